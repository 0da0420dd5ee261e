"""Fuzz definitions of ROS 1."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("ros1_definition")

if __name__ == "__main__":
    targets.main("ros1_definition")
