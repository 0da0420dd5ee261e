"""Measure the time from pip install to a red page: python bench/red_page.py dist/logreel-….whl

Makes an environment of its own, installs the wheel and what it needs without any cache, and judges a run with a fault
by a contract, beside a good run. Prints the seconds of each step. Logs and contract are made before, and not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def make_inputs(folder: Path) -> None:
    """Write a good run, one with a fault, and a contract learned from three good ones."""
    import logreel
    from support.builders.good_runs import content, faulty, multicopter

    runs = [content(multicopter(seed)) for seed in range(3)]
    logreel.learn_contract(runs).save(folder / "contract.toml")
    (folder / "good.ulg").write_bytes(runs[0])
    (folder / "run.ulg").write_bytes(content(faulty("multicopter", 60, "swapped axes", 2)[0]))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path, help="wheel of logreel, as `make build` makes it")
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory(prefix="logreel-red-") as name:
        folder = Path(name)
        make_inputs(folder)
        programs = folder / "env" / "bin"
        words = ["ci", "run.ulg", "--contract", "contract.toml", "--baseline", "good.ulg", "-o", "out"]
        steps = {
            "environment": [sys.executable, "-m", "venv", str(folder / "env")],
            "pip install": [
                str(programs / "python"), "-m", "pip", "install", "-q", "--no-cache-dir",
                "--disable-pip-version-check", str(wheel),
            ],
            "logreel ci": [str(programs / "logreel"), *words],
        }  # fmt: skip
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        total = 0.0
        for step, command in steps.items():
            began = time.monotonic()
            code = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL).returncode
            took = time.monotonic() - began
            total += took
            print(f"{step}: {took:.1f} s")
            if code != (4 if step == "logreel ci" else 0):
                print(f"{step} ended with exit code {code}", file=sys.stderr)
                return 1
        page = (folder / "out/report.html").read_text(encoding="utf-8")
        assert "1 of 1 run failed" in page
        print(f"from nothing to a red page: {total:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
