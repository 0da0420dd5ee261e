"""Fuzz descriptors of protobuf in MCAP."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("protobuf_definition")

if __name__ == "__main__":
    targets.main("protobuf_definition")
