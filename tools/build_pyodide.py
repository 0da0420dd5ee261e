"""Compile logreel for Pyodide without Emscripten: python tools/build_pyodide.py PYODIDE -o FOLDER [lz4 zstandard …]

PYODIDE is the folder of a Pyodide distribution; the wheels in FOLDER load in it, and in no other version. Names after
that are packages of the index that are compiled from their sources in the same way: those with a C extension.

Releases are built by cibuildwheel (``--platform pyodide``), which installs Emscripten's own compiler. Here clang and
wasm-ld of any distribution do, with the headers of any Emscripten: kernels call nothing but CPython and four functions
of the C library, whose types have not changed.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: What a wheel of logreel is built from; the tree itself has kernels for this machine, and perhaps a ``build``.
SOURCES = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
#: Where Debian and Emscripten's own installer have the headers.
HEADERS = ("/usr/share/emscripten/cache/sysroot/include", "/usr/lib/emscripten/cache/sysroot/include")
#: What builds packages: installed as for this machine, because setuptools itself is not to be compiled for a browser.
BUILDERS = ("setuptools>=77,<80", "wheel", "setuptools_scm", "pkgconfig", "packaging")
#: Variables of CPython's build that are lines of its ``pyconfig.h``.
_CONFIG = re.compile(r"(HAVE|SIZEOF|ALIGNOF|WITH|PY|Py)_\w+|DOUBLE_IS_\w+|STDC_HEADERS|MAJOR_IN_SYSMACROS")
_VERSION = re.compile(r"\d+")


class CannotBuild(Exception):
    """What is missing, as a sentence for people."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A Pyodide distribution: its folder, and what its lock file says of it.

    files    the packages that are in the folder, a part of those that the lock file lists
    depends  names of the packages that each package needs
    """

    folder: Path
    python: str
    abi: str
    files: dict[str, Path]
    depends: dict[str, list[str]]

    @classmethod
    def of(cls, folder: Path) -> Distribution:
        """Read the lock file of a distribution."""
        try:
            lock = json.loads((folder / "pyodide-lock.json").read_text("utf-8"))
            info, packages = lock["info"], lock["packages"]
            files = {name: folder / package["file_name"] for name, package in packages.items()}
            here = {name: path for name, path in files.items() if path.is_file()}
            depends = {name: packages[name]["depends"] for name in here}
            return cls(folder, info["python"], info["abi_version"], here, depends)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CannotBuild(f"{folder} is not the folder of a Pyodide distribution: {error}") from error

    def closure(self, name: str) -> list[str]:
        """Return a package that is in the folder with all that it needs; empty if any of it is not."""
        needed = [name]
        for each in needed:
            needed += [other for other in self.depends.get(each, ()) if other not in needed]
        return needed if all(each in self.files for each in needed) else []

    @property
    def platform(self) -> str:
        """Return the platform of its wheels."""
        return f"pyodide_{self.abi}_wasm32"

    def build_variables(self) -> dict[str, Any]:
        """Return the variables with which its CPython was built."""
        with (
            zipfile.ZipFile(self.folder / "python_stdlib.zip") as library,
            tempfile.TemporaryDirectory() as scratch,
        ):
            (name,) = (name for name in library.namelist() if re.fullmatch(r"_sysconfigdata_.*\.py", name))
            variables: dict[str, Any] = runpy.run_path(library.extract(name, scratch))["build_time_vars"]
        return variables


@dataclass(frozen=True, slots=True)
class Compiler:
    """Paths of clang, of wasm-ld, and of Emscripten's headers."""

    clang: str
    linker: str
    headers: Path

    @classmethod
    def found(cls) -> Compiler:
        """Find them; variables of the environment say where else: CLANG, WASM_LD, EMSCRIPTEN_HEADERS."""
        clang = os.environ.get("CLANG") or _newest("clang")
        linker = os.environ.get("WASM_LD") or _newest("wasm-ld")
        given = os.environ.get("EMSCRIPTEN_HEADERS")
        emcc = shutil.which("emcc")
        folders = (
            [given]
            if given
            else [*HEADERS, *([f"{Path(emcc).resolve().parent}/cache/sysroot/include"] if emcc else [])]
        )
        headers = next((Path(folder) for folder in folders if (Path(folder) / "stdio.h").is_file()), None)
        missing = [
            text
            for text, value in (
                ("clang (apt-get install clang-19, or CLANG=PATH)", clang),
                ("wasm-ld (apt-get install lld-19, or WASM_LD=PATH)", linker),
                (
                    "the headers of Emscripten (apt-get install emscripten, or EMSCRIPTEN_HEADERS=FOLDER)",
                    headers,
                ),
            )
            if not value
        ]
        if clang is None or linker is None or headers is None:
            raise CannotBuild("to compile for Pyodide this needs " + ", and ".join(missing))
        return cls(clang, linker, headers)


def _newest(name: str) -> str | None:
    """Return the path of a program, whose name may end in a version: the newest one that is on the path."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    paths = [
        path
        for folder in folders
        for path in folder.glob(f"{name}*")
        if re.fullmatch(rf"{name}(-\d+)?", path.name)
    ]
    return (
        str(max(paths, key=lambda path: int((_VERSION.findall(path.name) or ["0"])[-1]))) if paths else None
    )


def pyconfig(variables: dict[str, Any]) -> str:
    """Return the ``pyconfig.h`` of the CPython that was built with *variables*; its wheels do not ship it."""
    numbers = {
        name: value for name, value in variables.items() if isinstance(value, int) and _CONFIG.fullmatch(name)
    }
    lines = [f"#define {name} {value}" for name, value in sorted(numbers.items()) if value]
    return "\n".join(["#ifndef Py_PYCONFIG_H", "#define Py_PYCONFIG_H", *lines, "#endif", ""])


def build(
    distribution: Distribution, out: Path, packages: Sequence[str] = (), say: Callable[[str], None] = print
) -> list[Path]:
    """Build the wheel of logreel, and those of *packages*, into *out*; return their paths, logreel's first.

    Packages need a Python of the version of the distribution, and are left out where there is none.
    """
    compiler, variables = Compiler.found(), distribution.build_variables()
    version = ".".join(distribution.python.split(".")[:2])
    suffix = str(variables["EXT_SUFFIX"])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        tree = scratch / "logreel"
        tree.mkdir()
        for source in SOURCES:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            options = (
                {"ignore": shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")}
                if copy is shutil.copytree
                else {}
            )
            copy(ROOT / source, tree / source, **options)  # type: ignore[operator]
        say("logreel")
        # Its kernels use the limited interface, which is the same for the headers of every Python.
        environment = _environment(compiler, distribution, variables, sys.executable, scratch)
        wheels = [_wheel(sys.executable, [str(tree)], environment, out, "logreel")]
        if packages and (base := shutil.which(f"python{version}")) is None:
            say(f"left out, because they need python{version} to be built: {', '.join(packages)}")
            return wheels
        for package in packages:
            say(package)
            python = str(scratch / "env" / "bin" / "python")
            if not Path(python).exists():
                _run([str(base), "-m", "venv", str(scratch / "env")], None, package)
                _run([python, "-m", "pip", "install", "--quiet", *BUILDERS], None, package)
            environment = _environment(compiler, distribution, variables, python, scratch)
            environment["SETUPTOOLS_EXT_SUFFIX"] = suffix
            wheels.append(
                _wheel(
                    python,
                    ["--no-build-isolation", "--no-binary", ":all:", package],
                    environment,
                    out,
                    package,
                )
            )
    return wheels


def _environment(
    compiler: Compiler, distribution: Distribution, variables: dict[str, Any], python: str, scratch: Path
) -> dict[str, str]:
    """Return an environment in which setuptools compiles for the distribution, with the headers of *python*."""
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    headers = scratch / f"include-{Path(include).name}"
    if not headers.exists():
        # Headers look for pyconfig.h beside them first.
        shutil.copytree(include, headers)
        (headers / "pyconfig.h").write_text(pyconfig(variables), "utf-8")
    flags = f"--target=wasm32-unknown-emscripten -fPIC -O2 -g0 -nostdlibinc -isystem {compiler.headers} -I{headers}"
    return os.environ | {
        "CC": f"{compiler.clang} {flags}",
        # Exports of functions with a visibility of their own, as PyInit_… have it; what is not there, Pyodide has.
        "LDSHARED": f"{compiler.linker} -shared --experimental-pic --no-entry --allow-undefined --strip-debug",
        # CFLAGS would be given to the linker, too.
        "CFLAGS": "",
        "LDFLAGS": "",
        "_PYTHON_HOST_PLATFORM": distribution.platform,
    }


def _wheel(python: str, what: list[str], environment: dict[str, str], out: Path, package: str) -> Path:
    """Build a wheel with pip, and return its path in *out*."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            python,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "-w",
            folder,
        ]
        _run([*command, *what], environment, package)
        (built,) = Path(folder).glob("*.whl")
        return Path(shutil.copy(built, out / built.name))


def _run(command: Sequence[str], environment: dict[str, str] | None, package: str) -> None:
    """Run a step of building a package; what it prints is shown where it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{package} cannot be compiled:\n{(done.stdout + done.stderr)[-4000:]}")


def main(words: Sequence[str]) -> int:
    """Build what the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pyodide", type=Path, help="folder of a Pyodide distribution")
    parser.add_argument("packages", nargs="*", help="packages that are compiled, too")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder for the wheels")
    chosen = parser.parse_intermixed_args(words)
    try:
        for path in build(Distribution.of(chosen.pyodide), chosen.out, chosen.packages):
            print(f"wrote {path} ({path.stat().st_size >> 10} KiB)")
    except CannotBuild as error:
        print(f"build_pyodide: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
