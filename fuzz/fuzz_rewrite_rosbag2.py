"""Fuzz the rewriting of damaged bags of ROS 2."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_rosbag2")

if __name__ == "__main__":
    targets.main("rewrite_rosbag2")
