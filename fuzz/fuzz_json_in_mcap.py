"""Fuzz JSON schemas and messages in MCAP."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("json_in_mcap")

if __name__ == "__main__":
    targets.main("json_in_mcap")
