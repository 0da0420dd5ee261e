"""Names and texts of logs that contain control characters: no verb passes these on to a terminal, or into a pipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import logreel
from logreel.cli import draw
from support.builders.contents import OWN_NAMES, SAMPLES
from support.harness.cli_runner import Run

#: What a terminal acts on, or what hides or reorders text; line feeds end lines.
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
#: Clears the screen, rings, reorders, returns, deletes.
EVIL = b"\x1b[2J\x07\xe2\x80\xae\r\x7f\xc2\x9b0m\x08\n"
#: Kinds of text that a log holds, replaced together.
KINDS = (("topics", "parameters", "text"), ("types", "metadata", "attachments"))
#: IN: the log, SOUND: it before it was changed, OUT: a new log, DIR: a new folder.
VERBS = (
    "info IN", "info -v IN", "summary IN", "health IN", "cat IN -n 30", "schema IN", "params IN", "params --changed IN",
    "text IN", "attachments IN", "stats --fields IN", "du IN", "check IN", "tf IN", "diff IN SOUND", "diff SOUND IN",
    "recover IN -o OUT", "sort IN -o OUT", "slice IN -t nothing -o OUT", "split IN --by-topic -o DIR",
    "convert IN OUT.mcap", "convert IN DIR.csv/", "cat IN -t nothing", "play -r 0 --to frames IN",
    "play -r 0 --to null IN", "edit IN -o OUT --rename nothing=b", "plot IN nothing", "report IN -o OUT.html",
    "sql FROM-logreel.channels IN", "attachments IN --to DIR",
)  # fmt: skip


def words(log: logreel.Log, kind: str) -> list[str]:
    """Return the texts of one kind in a log."""
    match kind:
        case "topics":
            return [topic for topic in log.channels if topic[0] != "~"]
        case "types":
            return [ch.schema.name for ch in log.channels.values()]
        case "metadata":
            return [*log.metadata, *(value for value in log.metadata.values() if isinstance(value, str))]
        case "parameters":
            return list(log.parameters)
        case "attachments":
            return list(log.attachments)
        case _:
            return [line.text for line in log.text]


def made_hostile(data: bytes, texts: list[str]) -> bytes:
    """Return *data* with all but the first byte of each text replaced, and sizes kept."""
    for text in sorted(set(texts), key=len, reverse=True):
        old = text.encode()
        if len(old) >= 3:
            data = data.replace(old, old[:1] + (EVIL * (len(old) // len(EVIL) + 1))[: len(old) - 1])
    return data


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("suffix", SAMPLES)
def test_no_verb_prints_control_characters_of_a_log(
    suffix: str, kinds: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, hostile = tmp_path / f"sound{suffix}", tmp_path / f"in{suffix}"
    data = SAMPLES[suffix]()
    sound.write_bytes(data)
    with logreel.open(sound) as log:
        changed = made_hostile(data, [word for kind in kinds for word in words(log, kind)])
    assert changed != data or suffix in OWN_NAMES, "the sample has such texts"
    hostile.write_bytes(changed)
    monkeypatch.chdir(tmp_path)
    for n, verb in enumerate(VERBS):
        names = {"IN": str(hostile), "SOUND": str(sound), "OUT": f"out{n}{suffix}", "DIR": f"dir{n}/"}
        args = [
            names.get(word, word.replace("OUT", f"out{n}").replace("DIR", f"dir{n}")) for word in verb.split()
        ]
        done = run(*(arg.replace("FROM-", "FROM ") for arg in args))
        for shown in (done.out, done.err):
            found = UNSAFE.search(shown)
            assert found is None, (verb, shown[max(0, found.start() - 60) : found.end() + 60])
            assert "internal error" not in shown, verb


def test_every_unsafe_character_is_escaped_in_tables_and_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = "".join(chr(code) for code in range(0x11000) if UNSAFE.match(chr(code)))
    assert draw.safe(every).isascii()
    draw.table([every], [[every]])
    draw.say(every)
    draw.echo(every)
    draw.echo_head(every)
    shown = capsys.readouterr()
    assert not UNSAFE.search(shown.out + shown.err)
