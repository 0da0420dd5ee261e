"""Fuzz the rewriting of damaged Koblenz logs."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_koblenz")

if __name__ == "__main__":
    targets.main("rewrite_koblenz")
