"""Fetch the JavaScript libraries that pages of logreel contain: ``python tools/vendor.py`` (needs npm)."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "src" / "logreel" / "outputs" / "vendor"
#: Package, version, licence, and the files that are kept, by their path in the package.
LIBRARIES = {
    "three": ("0.184.0", "MIT", ("build/three.module.min.js", "build/three.core.min.js", "LICENSE")),
    # Outlines of countries; tests compare the checksums.
    "world-atlas": (
        "2.0.2",
        "ISC; the data, Natural Earth 1:110m, are in the public domain",
        ("countries-110m.json", "LICENSE"),
    ),
    "uplot": ("1.6.32", "MIT", ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")),
}


def fetch(package: str, version: str, files: tuple[str, ...]) -> dict[str, str]:
    """Write *files* of an npm package to its folder; return their SHA-256 by name."""
    sums = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            for file in files:
                member = packed.extractfile(f"package/{file}")
                assert member is not None, file
                content = member.read()
                target = VENDOR / package / Path(file).name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                sums[target.name] = hashlib.sha256(content).hexdigest()
    return sums


def main() -> None:
    """Fetch all libraries, and write their versions, licences and checksums to ``vendored.json``."""
    found = {
        package: {"version": version, "license": licence, "sha256": fetch(package, version, files)}
        for package, (version, licence, files) in LIBRARIES.items()
    }
    (VENDOR / "vendored.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
