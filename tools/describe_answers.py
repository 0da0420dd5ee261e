"""Write the JSON Schemas of all answers into docs/schemas, and their list into docs/answers.md.

Run it after answers change.

.venv/bin/python tools/describe_answers.py            writes the files
.venv/bin/python tools/describe_answers.py --check    exits with 1 and names the files that are not current
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from logreel.cli.answer_schemas import SCHEMAS, schema_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- begin: tools/describe_answers.py -->\n", "<!-- end -->\n"


def name_of(verb: str) -> str:
    """Return the name of the file for the schema of a verb."""
    return f"{verb.replace(' ', '-')}.json"


def files() -> dict[Path, str]:
    """Return the text of each file by its path."""
    page = DOCS / "answers.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    made = {
        DOCS / "schemas" / name_of(verb): json.dumps(schema_of(verb), indent=1, ensure_ascii=False) + "\n"
        for verb in SCHEMAS
    }
    return {page: before + BEGIN + _listed() + END + rest.partition(END)[2], **made}


def _listed() -> str:
    """Return the table of all verbs with the members of their objects."""
    rows = ["| verb | members |", "|---|---|"]
    for verb in SCHEMAS:
        schema: dict[str, Any] = schema_of(verb) or {}
        texts = [_members(branch) for branch in schema.get("anyOf", [schema])]
        rows.append(f"| [`{verb}`](schemas/{name_of(verb)}) | {' — or '.join(texts)} |")
    return "\n".join(rows) + "\n"


def _members(schema: dict[str, Any]) -> str:
    names = [name for name in schema["properties"] if name not in ("left_out", "ask")]
    required = set(schema["required"])
    return " ".join(f"`{name}`{'' if name in required else '?'}" for name in names)


def main() -> int:
    """Write or compare the files; return the exit code."""
    made = files()
    old = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    gone = [path for path in (DOCS / "schemas").glob("*.json") if path not in made]
    if "--check" in sys.argv[1:]:
        for path in [*old, *gone]:
            sys.stderr.write(f"{path.name} is not current: run tools/describe_answers.py\n")
        return 1 if old or gone else 0
    (DOCS / "schemas").mkdir(exist_ok=True)
    for path in old:
        path.write_text(made[path], "utf-8")
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
