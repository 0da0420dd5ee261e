"""Which outputs there are, by the suffix of the name to write."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from logreel.errors import UsageError


@dataclass(frozen=True, slots=True)
class Output:
    """One kind of output.

    suffix   ends the name to write, and chooses this output
    title    what people call it
    module   has ``write``; loaded when first used
    columns  True: one file per channel, ``write(out, schema, batches)``, so several channels need a folder.
             False: one file for all, ``write(out, job)``
    """

    suffix: str
    title: str
    module: str
    columns: bool

    def writer(self) -> Callable[..., Any]:
        """The function that writes."""
        found: Callable[..., Any] = importlib.import_module(self.module).write
        return found


#: A new output is a module and a line here.
OUTPUTS: dict[str, Output] = {
    output.suffix: output
    for output in (
        Output(".parquet", "Apache Parquet", "logreel.outputs.parquet", columns=True),
        Output(".csv", "Comma-separated values", "logreel.outputs.csv", columns=True),
        Output(".arrow", "Apache Arrow IPC", "logreel.outputs.arrow_ipc", columns=True),
        Output(".ndjson", "JSON, a line per message", "logreel.outputs.ndjson", columns=False),
    )
}


def find_output(name: str) -> Output:
    """The output that the suffix of *name* chooses; raises UsageError that names the known ones."""
    plain = name.rstrip("/\\").lower()
    for suffix, output in OUTPUTS.items():
        if plain.endswith(suffix):
            return output
    known = ", ".join(f"{o.suffix}/" if o.columns else o.suffix for o in OUTPUTS.values())
    raise UsageError(f"the suffix of {name!r} names no output; known: {known}")
