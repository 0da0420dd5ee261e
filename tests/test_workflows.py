"""What workflows, recipe and settings of wheels name exists here, and no workflow may do more than it must."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
ROOT = Path(__file__).resolve().parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# YAML takes the word `on` for true.
FLOWS: dict[str, dict[Any, Any]] = {
    path.name: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}


def steps() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield where each step is, its job and the step."""
    for flow, content in FLOWS.items():
        for name, job in content["jobs"].items():
            for step in job.get("steps", ()):
                yield f"{flow}: {name}", job, step


def test_there_are_workflows_for_tests_wheels_and_releases() -> None:
    assert FLOWS.keys() == {"test.yml", "wheels.yml", "release.yml"}
    assert FLOWS["release.yml"][True] == {"push": {"tags": ["v*"]}}


def test_what_steps_run_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = 0
    for where, _, step in steps():
        text = step.get("run", "")
        for target in re.findall(r"\bmake ([a-z-]+)", text):
            assert target in targets, (where, target)
        for place in re.findall(r"\b(?:tools|tests|src|bench)/[\w./-]+", text):
            assert (ROOT / place).exists(), (where, place)
        named += "make " in text or "tools/" in text
    assert named >= 6


def test_jobs_wait_for_jobs_that_there_are_and_call_workflows_that_can_be_called() -> None:
    for flow, content in FLOWS.items():
        for name, job in content["jobs"].items():
            needs = job.get("needs", [])
            assert set([needs] if isinstance(needs, str) else needs) <= content["jobs"].keys(), (flow, name)
            if "uses" in job:
                assert "workflow_call" in FLOWS[Path(job["uses"]).name][True]
            else:
                assert job["timeout-minutes"] <= 90, (flow, name)
    for where, _, step in steps():
        assert ("run" in step) != ("uses" in step), where
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]*\d[\w.]*", step["uses"]), (where, step["uses"])


def test_artifacts_that_are_fetched_were_kept() -> None:
    runners = FLOWS["wheels.yml"]["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    kept = {"bill", "dist-sdist"} | {f"dist-{entry['runner']}-{entry['platform']}" for entry in runners}
    stated = {step["with"]["name"] for _, _, step in steps() if "upload-artifact" in step.get("uses", "")}
    assert stated == {"bill", "dist-sdist", "dist-${{ matrix.runner }}-${{ matrix.platform }}"}
    assert len(kept) == len(runners) + 2, "two jobs keep artifacts of one name"
    for where, _, step in steps():
        if "download-artifact" in step.get("uses", ""):
            assert step["with"].get("name", "bill") in kept, where
    assert {entry["platform"] for entry in runners} == {"linux", "macos", "windows", "pyodide"}


def test_only_two_jobs_may_write_and_no_script_has_text_from_outside() -> None:
    for content in FLOWS.values():
        assert content["permissions"] == {"contents": "read"}
    more = {
        f"{flow}: {name}": job["permissions"]
        for flow, content in FLOWS.items()
        for name, job in content["jobs"].items()
        if "permissions" in job
    }
    assert more == {
        "release.yml: publish": {"id-token": "write"},
        "release.yml: announce": {"contents": "write"},
    }
    publish = FLOWS["release.yml"]["jobs"]["publish"]
    assert publish["environment"] == "pypi"
    # With trusted publishing no password is there, and with that right no code of the tree runs.
    assert not any("run" in step or "checkout" in step["uses"] for step in publish["steps"])
    assert not any("secrets." in str(step) for _, _, step in steps())
    for where, _, step in steps():
        assert "${{" not in step.get("run", ""), (
            f"{where}: values go through env, as text they could be commands"
        )


def test_every_python_of_the_suite_gets_a_wheel() -> None:
    settings = PYPROJECT["tool"]["cibuildwheel"]
    built = set(settings["build"].replace("-*", "").split())
    tested = {
        f"cp{v.replace('.', '')}" for v in FLOWS["test.yml"]["jobs"]["suite"]["strategy"]["matrix"]["python"]
    }
    assert built == tested | {"cp314t"}
    assert any(
        step.get("with", {}).get("python-version") == "3.14t"
        for step in FLOWS["test.yml"]["jobs"]["threads"]["steps"]
    )
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"
    assert (ROOT / settings["test-command"].split()[-1]).exists()
    assert "musllinux_1_2" in settings["linux"]["musllinux-aarch64-image"]


def test_cibuildwheel_reads_its_settings() -> None:
    pytest.importorskip("cibuildwheel", reason="cibuildwheel is not installed: pip install cibuildwheel")
    for platform, arch, expected in (
        ("linux", "x86_64", {"cp311-manylinux_x86_64", "cp311-musllinux_x86_64", "cp314t-manylinux_x86_64"}),
        ("linux", "aarch64", {"cp311-manylinux_aarch64", "cp311-musllinux_aarch64"}),
        ("macos", "arm64", {"cp311-macosx_arm64", "cp314t-macosx_arm64"}),
        ("windows", "AMD64", {"cp311-win_amd64", "cp314t-win_amd64"}),
        ("pyodide", "wasm32", {"cp314-pyodide_wasm32"}),
    ):
        words = ["--platform", platform, "--archs", arch, "--print-build-identifiers"]
        done = subprocess.run(
            [sys.executable, "-m", "cibuildwheel", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert expected <= set(done.stdout.split()), platform


def test_the_recipe_has_the_version_commands_and_requirements_of_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda-forge/recipe.yaml").read_text("utf-8"))
    project = PYPROJECT["project"]

    def plain(requirements: list[str]) -> set[str]:
        return {re.sub(r"[ ;].*", "", text.replace(" >", ">")).lower() for text in requirements}

    assert recipe["context"]["version"] == project["version"]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]
    assert plain(recipe["requirements"]["run"]) == plain(project["dependencies"]) | {
        f"python{project['requires-python']}"
    }
    assert plain(PYPROJECT["build-system"]["requires"]) <= plain(recipe["requirements"]["host"])
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
