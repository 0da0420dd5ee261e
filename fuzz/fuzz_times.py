"""Fuzz texts of times."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("times")

if __name__ == "__main__":
    targets.main("times")
