"""Fuzz definitions of ROS 2."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("ros2_definition")

if __name__ == "__main__":
    targets.main("ros2_definition")
