"""Fuzz the reader of ULog files."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("read_ulog")

if __name__ == "__main__":
    targets.main("read_ulog")
