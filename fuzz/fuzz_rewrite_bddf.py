"""Fuzz the rewriting of damaged BDDF."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_bddf")

if __name__ == "__main__":
    targets.main("rewrite_bddf")
