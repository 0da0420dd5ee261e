"""Fuzz the unpacking of LZ4 frames."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("lz4_frames")

if __name__ == "__main__":
    targets.main("lz4_frames")
