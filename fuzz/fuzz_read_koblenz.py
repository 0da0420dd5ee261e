"""Fuzz the reader of Koblenz logs."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_koblenz")

if __name__ == "__main__":
    targets.main("read_koblenz")
