"""``logreel new-format`` writes a package that passes the tests of every format as it is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from support.harness.cli_runner import Run, Spawn


def install(package: Path) -> None:
    """Make the folder of sources look as pip leaves it: with a list of entry points."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = package / "src" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (group, points), *others = project["entry-points"].items()
    assert not others
    lines = [f"{name} = {place}" for name, place in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


def test_the_package_passes_its_tests_as_it_is(
    run: Run, spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("new-format", "thermo")
    assert done.code == 0
    written = [path for path in Path("logreel-thermo").rglob("*") if path.is_file()]
    assert sorted(map(str, written)) == sorted(done.out.split())
    package = tmp_path / "logreel-thermo"
    assert not [path for path in written if "NAME" in path.read_text() + str(path)]
    install(package)
    monkeypatch.setenv("PYTHONPATH", str(package / "src"))
    tested = spawn("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", cwd=package)
    out = tested.stdout.decode()
    assert tested.returncode == 0, out
    passed, skipped = map(int, re.search(r"(\d+) passed, (\d+) skipped", out).groups())
    assert passed >= 11, out
    # What is skipped is what a reader alone cannot do.
    reasons = re.findall(r"SKIPPED \[(\d+)\] \S+ (.*)", out)
    assert sum(int(count) for count, _ in reasons) == skipped
    assert all("writ" in reason for _, reason in reasons), out


@pytest.mark.parametrize("name", ["ulog", "Thermo", "9lives", "a-b", "class", "", "../x", "a" * 65])
def test_names_that_cannot_be_are_refused(
    run: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = run("new-format", name)
    assert done.code == 2
    assert [path.name for path in tmp_path.rglob("*")] == ["here"]


def test_nothing_that_exists_is_touched(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    done = run("new-format", "thermo", "-o", str(tmp_path / "there"))
    assert done.code == 1
    assert "exists already" in done.err
    assert not list((tmp_path / "there").iterdir())
