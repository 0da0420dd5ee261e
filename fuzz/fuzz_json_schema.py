"""Fuzz JSON schemas."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("json_schema")

if __name__ == "__main__":
    targets.main("json_schema")
