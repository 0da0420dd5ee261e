"""The example in C and C++ reads channels through Arrow's C data interface; skipped without a compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import logreel
from support.harness.cli_runner import environment
from support.harness.forked import forked, forked_python, run_forked
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "arrow_c"


#: Compilers, and the options by which they read the example as their language.
LANGUAGES = {"gcc": ["-std=c11"], "g++": ["-x", "c++", "-std=c++17"]}


@pytest.fixture(scope="module", params=LANGUAGES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (compiler := shutil.which(request.param)):
        pytest.skip(f"no {request.param} here")
    out = tmp_path_factory.mktemp("c") / "libread_log.so"
    flags = [*LANGUAGES[request.param], "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, EXAMPLE / "read_log.c", "-o", out], check=True)
    return out


def printed(library: Path, path: Path, topic: str) -> subprocess.CompletedProcess[bytes]:
    command = forked_python(EXAMPLE / "read_log.py", library, path, topic)
    return run_forked(command, environment(), 120)


@pytest.mark.parametrize(
    ("name", "content", "topic"),
    [("a.ulg", flight, "vehicle_attitude"), ("a.ulg", flight, "sensor_gps"), ("a.bag", drive, "/imu")],
)
def test_the_means_of_all_columns_are_those_of_numpy(
    name: str, content: object, topic: str, library: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content())  # type: ignore[operator]
    done = printed(library, path, topic)
    assert (done.returncode, done.stderr) == (0, b"")
    table = logreel.open(path)[topic].to_arrow()
    head, *lines = done.stdout.decode().splitlines()
    assert head == f"{len(table)} rows"
    while any(isinstance(field.type, pa.StructType) for field in table.schema):
        table = table.flatten()
    assert [line.split()[0] for line in lines] == table.column_names
    numbers = 0
    for line, column in zip(lines, table.columns, strict=True):
        words = line.split()
        if len(words) > 2:
            values = column.cast(pa.int64()) if words[1][0] == "t" else column
            mean = np.mean(values.to_numpy().astype(np.float64))
            assert words[2:3] == ["mean"]
            assert float(words[3]) == pytest.approx(mean, rel=1e-9, nan_ok=True)
            assert int(words[5]) == len(table)
            numbers += 1
    assert numbers >= 2


def test_a_command_of_the_page_is_the_one_that_is_tested() -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert "gcc -O2 -Wall -Wextra -shared -fPIC read_log.c -o libread_log.so" in text
    assert "g++ -x c++ -O2 -Wall -Wextra -shared -fPIC read_log.c -o libread_log.so" in text
    assert "python read_log.py ./libread_log.so" in text


def test_an_arrow_stream_in_a_pipe_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    command = forked("convert", path, "-o", "-", "--format", "arrow", "-t", "vehicle_attitude")
    done = run_forked(command, environment(), 120)
    assert done.returncode == 0, done.stderr
    assert len(pa.ipc.open_file(done.stdout).read_all()) == len(logreel.open(path)["vehicle_attitude"])
