"""Fuzz the rewriting of damaged MCAP files."""

import atheris

with atheris.instrument_imports(include=["logreel"]):
    import targets

    targets.warm_up("rewrite_mcap")

if __name__ == "__main__":
    targets.main("rewrite_mcap")
