"""Errors: one sentence in two wordings, which survives pickling."""

from __future__ import annotations

import copy
import pickle
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from logreel import errors
from logreel.cli.app import logreel as group
from logreel.cli.exits import sentence
from logreel.errors import (
    DamagedError,
    IncompleteOutputError,
    LogError,
    MissingDependencyError,
    NotFoundError,
    Problem,
    TopicError,
    UsageError,
)

ALL = [
    LogError("wrong", path="a.bag", offset=7, hint="pass force=True"),
    UsageError("wrong"),
    NotFoundError("field", "yaw", ["q", "roll"]),
    TopicError("channel", "imo", ["imu", "gps"], path="a.bag"),
    DamagedError(Problem("truncated", 5, 3, True, "cut short"), path="a.bag"),
    IncompleteOutputError("two things would be lost: ", ["one", "two"], path="a.bag"),
    MissingDependencyError("polars", "polars"),
    *(
        kind("wrong", path="a.bag")
        for kind in (
            errors.UnknownFormatError,
            errors.UnsupportedError,
            errors.DefinitionError,
            errors.FileChangedError,
            errors.UnreachableError,
        )
    ),
]


def test_every_kind_of_error_is_tried() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LogError)}
    assert kinds == {type(error) for error in ALL}


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_and_copying(error: LogError) -> None:
    error.__notes__ = ["a note"]
    for back in (
        pickle.loads(pickle.dumps(error)),  # noqa: S301 - our own bytes
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert back.args == error.args
        assert vars(back) == vars(error)
        assert (back.path, back.offset, back.with_hint("x")) == (
            error.path,
            error.offset,
            error.with_hint("x"),
        )


def test_a_hint_is_worded_for_python_and_for_the_command_line() -> None:
    error = ALL[0]
    assert str(error) == "a.bag: wrong; pass force=True (at byte 7)"
    assert sentence(error) == "a.bag: wrong; pass --force (at byte 7)"
    assert sentence(LogError("wrong", hint="sort it")) == "wrong; sort it"
    assert LogError("wrong", hint="pass utc=True").with_hint("") == "wrong"


@pytest.mark.parametrize(
    ("verb", "hint", "worded"),
    [
        ("cat", "leave out topics= and count=", "leave out -t and -n"),
        ("convert", "leave out flatten=False", "leave out --nested"),
        (
            "tf",
            "missing='nan' marks them, nothing='x' does not",
            "--missing nan marks them, nothing='x' does not",
        ),
        ("params", "delimiter= is for form='csv'", "--separator is for --format csv"),
        (
            "record",
            "write one by logreel.slice(path, new, segment=1)",
            "write one by 'logreel slice --segment 1'",
        ),
        ("migrate", "logreel.ops.migrate.write_template() begins one", "--write-template FILE begins one"),
        (
            "info",
            "logreel.ops.migrate.write_template() begins one",
            "logreel.ops.migrate.write_template() begins one",
        ),
        ("info", "pass logreel.open(path, decrypt=True)", "pass --decrypt"),
        ("carla replay", "name the actor with follow=", "name the actor with --follow"),
        ("cat", "choose the channel with topics=", "choose the channel with -t"),
    ],
)
def test_parameters_and_functions_in_hints_become_options_and_verbs(
    verb: str, hint: str, worded: str
) -> None:
    context = click.Context(group)
    for name in verb.split():
        command: Any = context.command
        context = click.Context(command.get_command(context, name), parent=context)
    assert sentence(UsageError("wrong", hint=hint), context) == f"wrong; {worded}"


def test_every_extra_that_an_error_names_installs_the_library() -> None:
    root = Path(__file__).resolve().parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    libraries = {
        name: {re.split(r"[\[>=<,]", one)[0] for one in required} for name, required in extras.items()
    }
    called = re.compile(r'MissingDependencyError\("([^"]+)", "([^"]+)"\)')
    named = {pair for path in (root / "src").rglob("*.py") for pair in called.findall(path.read_text())}
    assert ("pylance", "train") in named
    assert {(library, extra) for library, extra in named if library not in libraries.get(extra, ())} == set()
