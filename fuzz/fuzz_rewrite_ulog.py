"""Fuzz the rewriting of damaged ULog files."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_ulog")

if __name__ == "__main__":
    targets.main("rewrite_ulog")
