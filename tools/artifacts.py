"""Build what a release ships, an sdist and a wheel, from the files that git has: ``python tools/artifacts.py OUT``.

The wheel is made from the sdist, as an installer without a wheel does, with gcc as the only program besides Python. The
tree itself stays as it is: compiled kernels and left-over ``build`` folders of it are not part of a release.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What the compiler driver starts; nothing else is on the path of a build.
COMPILER = ("gcc", "cc", "as", "ld")


class BuildError(Exception):
    """A step that failed; the text is its words and its last line."""


def run(folder: Path, *words: str | Path, env: dict[str, str] | None = None) -> str:
    """Run a program and return what it prints; raises BuildError."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, env=env)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        begun = " ".join(str(word) for word in words[:4])
        raise BuildError(f"{begun} ended with {done.returncode}: {said[-1] if said else 'nothing said'}")
    return done.stdout


def environment(folder: Path, python: str = sys.executable) -> Path:
    """Make a bare environment, and return its Python."""
    run(Path.cwd(), python, "-m", "venv", folder)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def install(python: Path, *requirements: str | Path) -> None:
    """Install into an environment; raises BuildError."""
    run(Path.cwd(), python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements)


def sources(root: Path, into: Path) -> Path:
    """Copy the files that git has, with what is changed in them, and return the copy."""
    for name in run(root, "git", "ls-files", "-z").split("\0"):
        if name and (root / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, into / name)
    return into


def build_sdist(root: Path, out: Path) -> Path:
    """Build the source distribution in *out*, and return it."""
    needed = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as name:
        python = environment(Path(name) / "tools")
        install(python, *needed)
        tree = sources(root, Path(name) / "tree")
        run(tree, python, "-c", f"import setuptools.build_meta as b; b.build_sdist({str(out)!r})")
    (archive,) = out.glob("*.tar.gz")
    return archive


def build_wheel(sdist: Path, out: Path) -> Path:
    """Build the wheel from the source distribution with gcc alone, and return it."""
    with tempfile.TemporaryDirectory() as name:
        programs = Path(name) / "bin"
        programs.mkdir()
        for program in COMPILER:
            if place := shutil.which(program):
                (programs / program).symlink_to(place)
        env = os.environ | {"PATH": str(programs) if sys.platform == "linux" else os.environ["PATH"]}
        words = (
            "-m",
            "pip",
            "wheel",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            "logreel",
        )
        run(out, sys.executable, *words, "--no-cache-dir", "-w", out, sdist, env=env)
    (wheel,) = out.glob("*.whl")
    return wheel


def main(words: list[str]) -> int:
    """Build, print the paths, and return the exit code."""
    out = Path(words[0] if words else "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("logreel-*.whl"), *out.glob("logreel-*.tar.gz")):
        old.unlink()
    try:
        sdist = build_sdist(ROOT, out)
        print(sdist, flush=True)
        print(build_wheel(sdist, out))
    except BuildError as error:
        print(f"artifacts: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
