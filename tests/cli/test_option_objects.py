"""Options that reach a verb as one object: a Selection, an Output, how logs are opened."""

from __future__ import annotations

import inspect
from typing import Any

import click
import pytest

from logreel.cli import inputs, options
from logreel.ops.selection import Selection
from support.harness.commands import commands

VERBS = list(commands())


def taken(*words: str, by: Any) -> dict[str, Any]:
    """Return what a verb with the options of the decorator *by* gets for a command line."""
    got: dict[str, Any] = {}

    def verb(**values: Any) -> int:
        got.update(values)
        return 0

    click.command()(by(verb)).main([*words], standalone_mode=False)
    return got


def test_a_verb_gets_a_selection_of_the_library() -> None:
    chosen = taken(
        "-t",
        "/a",
        "-t",
        "/b",
        "-x",
        "/c",
        "-S",
        "+1s",
        "-n",
        "3",
        by=options.selection("topics", "exclude", "start", "end", "count"),
    )
    assert chosen == {"selection": Selection(topics=("/a", "/b"), exclude=("/c",), start="+1s", count=3)}
    assert taken(by=options.selection()) == {"selection": Selection()}


def test_only_members_that_choose_something_are_passed_on() -> None:
    assert options.members_of(Selection()) == {}
    selection = Selection(topics=["/a"], where=("x > 1",), segment=0, count=0, keep_latched=True)
    assert options.members_of(selection) == {
        "topics": ["/a"], "where": ("x > 1",), "segment": 0, "count": 0, "keep_latched": True,
    }  # fmt: skip


def test_a_verb_gets_its_output_with_the_options_of_the_library() -> None:
    by = options.output("out", "format", "compression", "chunk_bytes", "options", "force")
    words = [
        "-o",
        "x.bag",
        "--compression",
        "lz4",
        "--chunk-size",
        "1MiB",
        "--option",
        "version=1.2",
        "--force",
    ]
    assert taken(*words, by=by) == {
        "output": options.LogToWrite(
            "x.bag",
            None,
            {"compression": "lz4", "chunk_bytes": 1 << 20, "options": {"version": "1.2"}, "force": True},
        )
    }


def test_logs_know_how_they_are_opened() -> None:
    words = ["a.bag", "b.bag", "--as-one", "--segment", "2", "--msgdef", "defs", "--type", "/a=b/C"]
    opened = taken(*words, by=inputs.logs("segment", "decrypt", "definitions"))["logs"]
    assert opened == inputs.Logs(
        ("a.bag", "b.bag"),
        True,
        False,
        {"segment": 2, "decrypt": False, "definitions": ("defs", {"/a": "b/C"})},
    )


@pytest.mark.parametrize(("name", "command"), VERBS, ids=[name for name, _ in VERBS])
def test_no_verb_lists_the_options_of_a_library_function(name: str, command: click.Command) -> None:
    if not isinstance(command, click.Group):
        assert command.callback is not None
        assert len(inspect.signature(inspect.unwrap(command.callback)).parameters) <= 10
