"""Fuzz conditions in SQL."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("expression")

if __name__ == "__main__":
    targets.main("expression")
