"""What a stranger types in an empty folder: a clone, ``make demo``, README, tutorial, every recipe (``make fresh``).

Nothing of this environment is used: only Python, gcc, make and the package index. The times go to ``LOGREEL_FRESH``.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: What README and the tutorial say to install, and what some recipe needs.
INSTALL = re.compile(r"pip install '(\.\[[^]]+\])'")


class Stranger:
    """A shell in a clone, with an empty home and nothing of this environment but where packages come from."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "logreel"
        self.steps: dict[str, float] = {}
        (folder / "home").mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, self.clone], check=True)
        binaries = self.clone / ".venv/bin"
        path = [binaries, Path(sys.base_prefix) / "bin", "/usr/local/bin", "/usr/bin", "/bin"]
        index = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))
        }
        self.environment = index | {
            "HOME": str(folder / "home"),
            "PATH": os.pathsep.join(map(str, path)),
            "LC_ALL": "C.UTF-8",
        }

    def type(self, line: str, folder: Path | None = None, name: str = "") -> str:
        """Run a line of a shell, note its time under *name*, and return what it prints."""
        begin = time.perf_counter()
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder or self.clone,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        self.steps[name or line] = time.perf_counter() - begin
        assert done.returncode == 0, f"{line}: exit {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout

    def page(self, page: str, folder: Path, options: str = "") -> dict[str, float]:
        """Type the examples of a page in a folder, and return seconds by heading."""
        typist = f"PYTHONPATH={self.clone}/tests python {self.clone}/tests/support/harness/pages.py"
        answer = self.type(f"{typist} {options} {self.clone}/{page}", folder, page)
        seconds: dict[str, float] = json.loads(answer.splitlines()[-1])
        return seconds


def test_everything_that_a_stranger_types_works(tmp_path: Path) -> None:
    out = os.environ.get("LOGREEL_FRESH")
    if not out:
        pytest.skip("installs everything from the package index: make fresh")
    stranger = Stranger(tmp_path)
    parts: dict[str, Any] = {}
    stranger.type("make demo")
    # Blocks under an extra come after what they need is installed.
    under_extra = r"'^(?:\*\*.*\*\* )?With `pip install .*\n\n```.*\n(?:.*\n)*?```\n'"
    parts["README.md"] = stranger.page("README.md", stranger.clone, f"--as-shown --without {under_extra}")
    for page in ("README.md", "docs/tutorial.md"):
        for extras in INSTALL.findall((stranger.clone / page).read_text(encoding="utf-8"))[:1]:
            stranger.type(f"pip install '{extras}'")
        (folder := tmp_path / Path(page).stem).mkdir()
        stranger.type("logreel demo", folder, f"logreel demo, before {page}")
        parts[page] = stranger.page(page, folder, "--as-shown")
    stranger.type("pip install '.[all]'")
    (folder := tmp_path / "cookbook").mkdir()
    parts["docs/cookbook.md"] = stranger.page("docs/cookbook.md", folder)
    recipes = [*parts["docs/cookbook.md"]]
    assert len(recipes) >= 60
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    about = f"commit {commit}, {date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores"
    answer = {"about": about, "steps": stranger.steps, "parts": parts}
    Path(out).write_text(json.dumps(answer, indent=1) + "\n")
