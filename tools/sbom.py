"""Write the bill of materials of an environment with logreel, CycloneDX 1.6: ``python tools/sbom.py PYTHON OUT``.

cyclonedx-py lists what is installed there; what is shipped inside of the wheel, libraries of the pages, is added from
the list that ``tools/vendor.py`` keeps.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENDORED = ROOT / "src/logreel/outputs/vendor/vendored.json"


def vendored() -> list[dict[str, Any]]:
    """Return the components that are inside of the wheel, with the digest of each file."""
    return [
        {
            "type": "library",
            "bom-ref": f"vendored/{name}",
            "name": name,
            "version": about["version"],
            "purl": f"pkg:npm/{name}@{about['version']}",
            "licenses": [{"license": {"name": about["license"]}}],
            "components": [
                {"type": "file", "name": file, "hashes": [{"alg": "SHA-256", "content": digest}]}
                for file, digest in sorted(about["sha256"].items())
            ],
        }
        for name, about in sorted(json.loads(VENDORED.read_text("utf-8")).items())
    ]


def main(words: list[str]) -> int:
    """Write the bill, and return the exit code."""
    python, out = words
    lister = [sys.executable, "-m", "cyclonedx_py", "environment", python, "--sv", "1.6", "--of", "JSON"]
    listed = subprocess.run(
        [*lister, "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--output-reproducible"],
        capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        print(listed.stderr.strip() or "cyclonedx-py has failed", file=sys.stderr)  # noqa: T201 - it is a command
        return 1
    bill = json.loads(listed.stdout)
    bill["components"] = [*bill.get("components", []), *vendored()]
    Path(out).write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
