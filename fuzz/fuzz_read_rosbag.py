"""Fuzz the reader of bags."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_rosbag")

if __name__ == "__main__":
    targets.main("read_rosbag")
