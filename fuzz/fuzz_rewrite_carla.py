"""Fuzz the rewriting of damaged CARLA recordings."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_carla")

if __name__ == "__main__":
    targets.main("rewrite_carla")
