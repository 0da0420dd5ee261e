"""Fuzz the reader of MCAP files."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_mcap")

if __name__ == "__main__":
    targets.main("read_mcap")
