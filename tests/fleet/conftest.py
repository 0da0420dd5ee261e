"""Folders of logs and datasets that the tests of fleets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from logreel.fleet import ingest
from support.builders.fleets import make_fleet
from support.harness.faults import Inline


@pytest.fixture(scope="session")
def small_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 24 files of all formats, sound and broken ones."""
    return make_fleet(tmp_path_factory.mktemp("small") / "logs", 24)


@pytest.fixture(scope="session")
def small_dataset(small_fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the dataset of the folder, which tests must not change."""
    path = tmp_path_factory.mktemp("dataset") / "fleet"
    ingest(small_fleet, path, engine=Inline(), timestamps="ns")
    return path
