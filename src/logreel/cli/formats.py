"""``logreel formats``."""

from __future__ import annotations

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb


@verb(
    examples={
        "logreel formats": "what can be read and written",
        "logreel formats --json": "the same as JSON",
    },
)
@paths.text_output
@common.as_json
def formats(as_json: bool) -> int:
    """List the formats that can be read and the outputs that can be written."""
    from logreel.outputs.registry import OUTPUTS, Shape
    from logreel.registry.registry import formats as known

    inputs = [
        {"name": f.name, "title": f.title, "versions": f.versions, "suffixes": list(f.suffixes)}
        for f in known().values()
    ]
    outputs = [
        {"suffix": o.suffix, "title": o.title, "folder": o.shape is not Shape.WHOLE}
        for o in OUTPUTS.all().values()
    ]
    if as_json:
        draw.echo_json({"formats": inputs, "outputs": outputs})
        return 0
    rows = [(f.name, f.title, f.versions, " ".join(f.suffixes)) for f in known().values()]
    draw.table(("reads", "title", "versions", "suffixes"), rows)
    draw.echo()
    draw.table(("converts to", "title"), [(" or ".join(o.names), o.title) for o in OUTPUTS.all().values()])
    return 0
