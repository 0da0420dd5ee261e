"""Fuzz compressed chunks of bags."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("bag_chunk")

if __name__ == "__main__":
    targets.main("bag_chunk")
