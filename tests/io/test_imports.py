"""Processes of logreel import pyarrow without pandas; what imports pandas itself still finds pyarrow knowing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.harness.cli_runner import environment

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

BEGIN = (
    "import sys\nfrom logreel.io.imports import import_arrow_without_pandas\nimport_arrow_without_pandas()\n"
)


def output(*args: str, cwd: Path | None = None) -> str:
    """Run Python in a fresh process and return what it prints."""
    done = subprocess.run([sys.executable, *args], capture_output=True, env=environment(), cwd=cwd, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "line",
    [
        "cat flight.ulg -t battery_status --format csv",
        "convert flight.ulg battery.csv -t battery_status",
        "slice flight.ulg -o o.ulg --where vehicle_attitude.q[1]>0",
        "sql SELECT+1+AS+a flight.ulg",
    ],
)
def test_a_verb_does_not_import_pandas(logs: Path, line: str) -> None:
    pytest.importorskip("duckdb")
    words = [word.replace("+", " ") for word in line.split()]
    script = (
        "import sys\nfrom logreel.cli import main\n"
        f"sys.argv = ['logreel', *{words}]\n"
        "assert main() == 0\nassert 'pyarrow' in sys.modules\nassert 'pandas' not in sys.modules\n"
    )
    output("-c", script, cwd=logs)


@pytest.mark.parametrize(
    "order", ["import pyarrow as pa\nimport pandas as pd", "import pandas as pd\nimport pyarrow as pa"]
)
def test_objects_of_pandas_are_recognised_where_it_is_imported(order: str) -> None:
    # Only pyarrow that knows a Series takes its NaN for a missing value.
    script = f"{BEGIN}{order}\nprint(pa.array(pd.Series([1.0, None])).null_count)"
    assert output("-c", script) == "1"


def test_tables_become_frames_where_nothing_else_imports_pandas() -> None:
    script = f"{BEGIN}import pyarrow as pa\nframe = pa.table({{'a': [1]}}).to_pandas()\nprint(type(frame).__name__)"
    assert output("-c", script) == "DataFrame"


def test_a_program_that_calls_the_command_line_keeps_its_imports() -> None:
    script = "import sys\nfrom logreel.cli import main\nbefore = [*sys.meta_path]\nmain(['info'])\n"
    assert output("-c", f"{script}print(sys.meta_path == before)") == "True"
