"""Fuzz the reader of CARLA recordings."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_carla")

if __name__ == "__main__":
    targets.main("read_carla")
