"""Fuzz definitions of ULog."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("ulog_definition")

if __name__ == "__main__":
    targets.main("ulog_definition")
