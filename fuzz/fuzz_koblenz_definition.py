"""Fuzz definitions of Koblenz logs."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("koblenz_definition")

if __name__ == "__main__":
    targets.main("koblenz_definition")
