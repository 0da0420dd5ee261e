"""Fuzz the reader of BDDF."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_bddf")

if __name__ == "__main__":
    targets.main("read_bddf")
