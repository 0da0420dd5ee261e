"""Fuzz the reader of bags of ROS 2."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_rosbag2")

if __name__ == "__main__":
    targets.main("read_rosbag2")
