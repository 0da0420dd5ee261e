"""Build the page that reads logs in the browser: python tools/build_drop.py PYODIDE [--out build/drop] [--wheel FILE]

PYODIDE is the folder of a Pyodide distribution (https://github.com/pyodide/pyodide/releases); nothing else is taken
from it but the runtime, NumPy and codecs. Without --wheel, logreel and the codecs that the distribution lacks are
compiled by ``build_pyodide.py``. The result is a folder that any web server can serve.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from build_pyodide import ROOT, CannotBuild, Distribution, build

PAGE = ROOT / "site/drop"
#: The runtime of a distribution.
RUNTIME = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
#: What logreel imports there, by the names of distributions; those that are compiled where a distribution lacks them.
NEEDED, WANTED, COMPILED = ("numpy",), ("lz4", "zstandard", "lzma", "protobuf"), ("lz4", "zstandard")
#: The package without C that is taken from the index where a distribution lacks it.
PURE = "protobuf"


def bundle(
    distribution: Distribution, out: Path, wheel: Path | None = None, say: Callable[[str], None] = print
) -> None:
    """Write the page to *out*, in place of what is there."""
    missing = [name for name in RUNTIME if not (distribution.folder / name).is_file()]
    missing += [name for name in NEEDED if name not in distribution.files]
    if missing:
        raise CannotBuild(f"{distribution.folder} lacks {', '.join(missing)}")
    # Into another folder first: a failed build leaves what was there.
    new = out.with_name(f"{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(PAGE, new, ignore=shutil.ignore_patterns("__pycache__"))
    (new / "wheels").mkdir()
    lacking = [name for name in WANTED if name not in distribution.files]
    if wheel is None:
        build(distribution, new / "wheels", [name for name in COMPILED if name in lacking], say)
    else:
        shutil.copy(wheel, new / "wheels")
    if PURE in lacking:
        _fetch_pure(distribution, new / "wheels")
    chosen = list(dict.fromkeys(name for one in (*NEEDED, *WANTED) for name in distribution.closure(one)))
    _copy_runtime(distribution, new / "runtime", chosen)
    wheels = sorted(path.name for path in (new / "wheels").iterdir())
    versions = [f"Python {distribution.python}", *(" ".join(name.split("-")[:2]) for name in wheels)]
    contents = {"packages": chosen, "wheels": wheels, "versions": ", ".join(versions)}
    (new / "contents.json").write_text(json.dumps(contents, indent=1) + "\n", "utf-8")
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)


def _copy_runtime(distribution: Distribution, target: Path, chosen: Sequence[str]) -> None:
    """Copy the runtime, the *chosen* packages, and the part of the lock file that is about them."""
    target.mkdir()
    for path in (
        *(distribution.folder / name for name in RUNTIME),
        *(distribution.files[name] for name in chosen),
    ):
        shutil.copy(path, target)
    lock = json.loads((distribution.folder / "pyodide-lock.json").read_text("utf-8"))
    lock["packages"] = {name: lock["packages"][name] for name in chosen}
    (target / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")


def _fetch_pure(distribution: Distribution, folder: Path) -> None:
    """Download the wheel of PURE that has no C, from pip's index."""
    only = ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"]
    version = ["--python-version", ".".join(distribution.python.split(".")[:2])]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "-d",
        str(folder),
        *only,
        *version,
        PURE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{PURE} cannot be fetched:\n{done.stderr[-2000:]}")


def files_of(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def main(words: Sequence[str]) -> int:
    """Build what the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pyodide", type=Path, help="folder of a Pyodide distribution")
    parser.add_argument("--out", type=Path, default=ROOT / "build/drop", help="folder of the page")
    parser.add_argument(
        "--wheel", type=Path, help="wheel of logreel for this distribution, as cibuildwheel builds it"
    )
    chosen = parser.parse_args(words)
    try:
        bundle(Distribution.of(chosen.pyodide), chosen.out, chosen.wheel)
    except CannotBuild as error:
        print(f"build_drop: {error}", file=sys.stderr)
        return 1
    total = sum(path.stat().st_size for path in files_of(chosen.out))
    print(f"wrote {chosen.out} ({total / 1e6:.1f} MB): python -m http.server -d {chosen.out} -b 127.0.0.1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
