"""Fuzz the rewriting of damaged bags."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_rosbag")

if __name__ == "__main__":
    targets.main("rewrite_rosbag")
