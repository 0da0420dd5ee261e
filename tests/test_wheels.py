"""The wheel that a release ships, in bare environments: every Python here, every extra alone (``make test-wheels``)."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logreel.cli.show import BUNDLED
from logreel.errors import LIBRARIES
from support.builders.training_logs import write_robot

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Engines of hundreds of megabytes, which `make test-fleet` installs, sums of others, and what `make site` installs.
LEFT_OUT = {"ray", "daft", "all", "test", "site"}
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")

Answer = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Return the wheel that ``tools/artifacts.py`` has built."""
    folder = os.environ.get("LOGREEL_WHEELS")
    if not folder:
        pytest.skip("needs a built wheel: make test-wheels")
    (found,) = Path(folder).glob("logreel-*.whl")
    return found


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a flight, a bag with pictures and the specification of a dataset of it."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "f.ulg").write_bytes(lzma.decompress(BUNDLED.read_bytes()))
    write_robot(folder / "robot.bag", 1.0)
    (folder / "spec.toml").write_text(SPEC)
    return folder


SPEC = """rate = 10
sync = { max_error = "100ms" }
[features."observation.state"]
fields = ["/state.x", "/state.y"]
"""


def bare(folder: Path, what: str, python: str = sys.executable) -> Callable[..., Answer]:
    """Install into a bare environment, and return a function that runs ``logreel``, or Python with ``-c``."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    binaries = folder / "bin"
    subprocess.run(
        [str(binaries / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", what],
        check=True,
    )
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "LOGREEL", "VIRTUAL"))
    }
    env |= {"LOGREEL_CACHE": "off", "LOGREEL_DATA": "off", "COLUMNS": "100"}

    def call(*words: str, cwd: Path = folder) -> Answer:
        program = "python" if words[0] in ("-c", "-m") else "logreel"
        return subprocess.run(
            [str(binaries / program), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
        )

    return call


def python_of(name: str) -> str | None:
    """Return the interpreter of this name if it runs; a shim of a version manager may not."""
    versions = Path.home().glob(f".pyenv/versions/{name.removeprefix('python')}.*/bin/{name}")
    for place in (shutil.which(name), *map(str, versions)):
        if place and subprocess.run([place, "-c", "import venv"], capture_output=True).returncode == 0:
            return place
    return None


@pytest.mark.parametrize("name", PYTHONS)
def test_one_wheel_reads_and_writes_with_every_python(
    wheel: Path, logs: Path, tmp_path: Path, name: str
) -> None:
    python = python_of(name)
    if python is None:
        pytest.skip(f"there is no {name} here")
    call = bare(tmp_path / "bare", str(wheel), python)
    assert call("--version").stdout.strip().endswith(PROJECT["version"])
    for words in (
        ("info", "f.ulg"),
        ("summary", "f.ulg"),
        ("health", "f.ulg"),
        ("recover", "f.ulg", "-o", str(tmp_path / "r.ulg")),
        ("convert", "f.ulg", str(tmp_path / "c.mcap")),
        ("info", str(tmp_path / "c.mcap")),
    ):
        done = call(*words, cwd=logs)
        assert done.returncode == 0, (words, done.stderr)
    # Only what is built for this wheel, nothing of the tree.
    place = call("-c", "import logreel.kernels.layout as k; print(k.__file__)").stdout.strip()
    assert place.startswith(str(tmp_path))
    assert place.endswith(".abi3.so")
    assert call("-m", "pip", "check").returncode == 0


#: What needs an extra, and the library that the sentence names.
MISSING = {
    "sql SELECT f.ulg": "duckdb",
    "view f.ulg --no-browser": "uvicorn",
    "play robot.bag --to foxglove": "(uvicorn|websockets|foxglove-sdk)",
    "info s3://bucket/x.ulg": "obstore",
    "plot f.ulg sensor_combined.gyro_rad[0]": "plotext",
    "cat f.ulg -t sensor_combined --format csv": "pyarrow",
    "convert f.ulg OUT/out.parquet/": "pyarrow",
    "convert f.ulg OUT/out.rrd": "rerun-sdk",
    "fleet ingest f.ulg -o OUT/fleet": "pyarrow",
    "plot f.ulg sensor_combined.gyro_rad[0] -o OUT/p.png": "matplotlib",
    "convert robot.bag OUT/out.mp4 -t /camera": "av",
    "dataset robot.bag -o OUT/set --spec spec.toml --to zarr": "(pyarrow|zarr)",
}


def test_without_extras_what_is_missing_is_one_sentence(wheel: Path, logs: Path, tmp_path: Path) -> None:
    call = bare(tmp_path / "bare", str(wheel))
    for text, library in MISSING.items():
        done = call(*text.replace("OUT", str(tmp_path)).split(), cwd=logs)
        lines = done.stderr.strip().splitlines()
        assert (done.returncode, len(lines)) == (1, 1), (text, done.stderr)
        assert re.search(rf"needs {library}: pip install 'logreel\[\w+\]'$", lines[0]), (text, lines)


#: What each extra is for: verbs, or Python; OUT is a folder.
USES: dict[str, tuple[str, ...]] = {
    "arrow": (
        "cat f.ulg -t sensor_combined --format csv",
        "convert f.ulg OUT/a.parquet/",
        "-c import logreel; assert logreel.open('f.ulg')['sensor_combined'].to_arrow().num_rows",
    ),
    "view": ("VIEW",),
    "sql": ("sql SELECT f.ulg", "slice f.ulg -o OUT/w.ulg --where sensor_combined.gyro_rad[1]>0"),
    "fleet": ("fleet ingest f.ulg -o OUT/fleet", "fleet verify OUT/fleet", "fleet status OUT/fleet"),
    "polars": ("-c import logreel; assert len(logreel.open('f.ulg')['sensor_combined'].to_polars())",),
    "pandas": ("-c import logreel; assert len(logreel.open('f.ulg')['sensor_combined'].to_pandas())",),
    "xarray": (
        "-c import logreel; assert logreel.open('f.ulg')['sensor_combined'].to_xarray().sizes['time']",
    ),
    "encrypted": ("-c from cryptography.hazmat.primitives.ciphers import Cipher",),
    "video": ("convert robot.bag OUT/out.mp4 -t /camera",),
    "rerun": ("convert f.ulg OUT/out.rrd",),
    "foxglove": ("-c import foxglove, websockets",),
    "tiles": ("-c import pmtiles.reader",),
    "remote": ("-c import logreel, pathlib; from obstore.store import LocalStore",),
    "train": tuple(
        f"dataset robot.bag -o OUT/set-{to} --spec spec.toml --to {to}"
        for to in ("lerobot", "zarr", "hdf5", "lance")
    ),
    "plot": ("plot f.ulg sensor_combined.gyro_rad[0]", "plot f.ulg sensor_combined.gyro_rad[0] -o OUT/p.png"),
}


def within(extra: str) -> set[str]:
    """Return an extra and those that it includes."""
    inside = {extra}
    for requirement in PROJECT["optional-dependencies"][extra]:
        if match := re.match(r"logreel\[([\w,]+)\]", requirement):
            inside |= set().union(*(within(name) for name in match[1].split(",")))
    return inside


def test_every_extra_has_a_use_here() -> None:
    assert USES.keys() == PROJECT["optional-dependencies"].keys() - LEFT_OUT


@pytest.mark.parametrize("extra", USES)
def test_an_extra_alone_has_all_that_it_needs(wheel: Path, logs: Path, tmp_path: Path, extra: str) -> None:
    call = bare(tmp_path / "bare", f"{wheel}[{extra}]")
    wanted = [module for module, (_, of) in LIBRARIES.items() if not of or of in within(extra)]
    if sys.version_info >= (3, 14):
        wanted.remove("zstandard")
    done = call("-c", f"from logreel.errors import library\nfor name in {wanted}: library(name)")
    assert done.returncode == 0, done.stderr
    for text in USES[extra]:
        if text == "VIEW":
            look_at_the_page(tmp_path / "bare/bin/logreel", logs)
            continue
        words = text.replace("OUT", str(tmp_path)).split(" ", 1 if text.startswith("-c ") else -1)
        done = call(*(QUERY if word == "SELECT" else word for word in words), cwd=logs)
        assert done.returncode == 0, (text, done.stdout, done.stderr)


QUERY = "SELECT count(*) FROM sensor_combined"


def look_at_the_page(program: Path, logs: Path) -> None:
    """Start the viewer, fetch its page, and end it."""
    words = [str(program), "view", "f.ulg", "--json", "--port", "0"]
    with subprocess.Popen(words, cwd=logs, stdout=subprocess.PIPE, text=True) as viewer:
        try:
            assert viewer.stdout is not None
            address = json.loads(viewer.stdout.readline())
            with urllib.request.urlopen(address["url"], timeout=60) as page:
                assert b"<html" in page.read()
        finally:
            viewer.terminate()


def test_every_kernel_keeps_to_the_limited_interface(wheel: Path) -> None:
    audit = shutil.which("abi3audit", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if audit is None:
        pytest.skip("abi3audit is not installed: pip install abi3audit")
    done = subprocess.run(
        [audit, "--strict", "--report", str(wheel)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)["specs"].values()
    kernels = {path.stem for path in (ROOT / "src/logreel/kernels").glob("[a-z]*.py")}
    assert {part["name"].partition(".")[0] for part in found["wheel"]} == kernels | {"_shared"}
    assert all(part["result"]["computed"] == "3.11" for part in found["wheel"])
