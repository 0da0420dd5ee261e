"""Notes of people on moments and spans of a log, kept in a file beside it: ``flight.ulg.notes.json``.

The file may come from anybody: it is read within limits, and what is no note is an error, so that nothing that a
person wrote is lost by writing the file again. An MCAP can carry its notes as metadata, see ``metadata_of``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, NotFoundError, UsageError
from logreel.io.atomic_file import replace_text
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.log.times import Time, time_ns
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable

#: What follows the name of a log in that of its notes, and the name of the metadata of an MCAP with notes.
SUFFIX, METADATA = ".notes.json", "logreel:notes"
#: Version of the file; newer ones are refused.
VERSION = 1
#: Most bytes of a file, notes, and characters of a title, of a text, and of an author.
BYTES, COUNT, TITLE, TEXT, AUTHOR = 4 << 20, 5000, 200, 20_000, 200
#: Colours that a note can have; empty: the usual one.
COLOURS = ("", "blue", "green", "orange", "purple", "red")
#: Bytes at both ends of a log whose digest tells it from others, as in the name of an index.
_ENDS = 1 << 16
_ID = re.compile(r"[0-9a-f]{1,32}")
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True, repr=False)
class Note(Brief):
    """A note on a moment or a span of a log.

    begin    ns of the log's clock
    end      end of the span, ns; None: a moment
    title    one line
    text     more, as plain text
    author   who wrote it, empty if unknown
    created  when, as RFC 3339 text in UTC, empty if unknown
    colour   one of ``COLOURS``
    id       name among the notes of a log, hexadecimal digits
    """

    begin: int
    end: int | None = None
    title: str = ""
    text: str = ""
    author: str = ""
    created: str = ""
    colour: str = ""
    id: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the note as JSON data, as in the file: times in ns of the log's clock."""
        return {
            "id": self.id,
            "begin_ns": self.begin,
            "end_ns": self.end,
            "title": self.title,
            "text": self.text,
            "author": self.author,
            "created": self.created,
            "colour": self.colour,
        }

    @classmethod
    def read(cls, content: Any) -> Note:
        """Return the note in JSON data; raises UsageError for what is none, and for texts that are too long."""
        if not isinstance(content, Mapping):
            raise UsageError(f"a note is an object, not {content!r:.60}")
        begin, end = content.get("begin_ns", ""), content.get("end_ns")
        if not _is_time(begin) or not (end is None or _is_time(end)):
            raise UsageError(f"times of a note are integers of ns, not {begin!r:.40} and {end!r:.40}")
        values = {
            name: content.get(name, "") for name in ("title", "text", "author", "created", "colour", "id")
        }
        return cls(int(begin), end, **values).checked()

    def checked(self) -> Note:
        """Return the note with its times in order and an id; raises UsageError for texts that it cannot have."""
        limits = {"title": TITLE, "text": TEXT, "author": AUTHOR, "created": 40, "colour": 20, "id": 32}
        for name, most in limits.items():
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > most:
                raise UsageError(
                    f"the {name} of a note is text of up to {most} characters, not {value!r:.60}"
                )
        if self.colour not in COLOURS:
            raise UsageError(f"no colour {self.colour!r} of a note; there are: {', '.join(COLOURS[1:])}")
        if not (self.title.strip() or self.text.strip()):
            raise UsageError("a note needs a title or a text")
        end = None if self.end in (None, self.begin) else self.end
        if end is not None and end < self.begin:
            raise UsageError(f"a note ends at {end} before it begins at {self.begin}")
        # A text with half a character could not be written.
        clean = {name: getattr(self, name).encode("utf-8", "replace").decode() for name in limits}
        clean["title"] = " ".join(clean["title"].split())
        if not _ID.fullmatch(clean["id"]):
            # The same each time that a file without ids is read.
            from hashlib import blake2b

            content = f"{self.begin} {end} {clean}".encode()
            clean["id"] = blake2b(content, digest_size=6).hexdigest()
        return replace(self, end=end, **clean)

    def touches(self, start: int | None, end: int | None) -> bool:
        """Return whether some of it lies between two times of the log's clock, ns; None: no bound."""
        last = self.begin if self.end is None else self.end
        return (end is None or self.begin <= end) and (start is None or last >= start)


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


class Notes(Sequence[Note]):
    """The notes of a log, by time; ``logreel.notes`` reads them.

    name     of the log
    path     of the file beside the log; None: there is no place for one, ``why`` says why
    why      why ``save`` cannot write; empty if it can
    problem  a sentence if the notes seem to be of another log; else empty
    start    start of the log, ns of its clock

    is_empty  begin with none, and read no file
    """

    def __init__(self, log: Log, *, is_empty: bool = False) -> None:
        self._log: Log = log
        self.name, self.start = log.name, log.start or 0
        self.path, self.why = _place(log)
        self.problem = ""
        self._notes: list[Note] = []
        self._about = _about(log)
        if is_empty:
            return
        shifts = getattr(log, "shifts", (0,)) if len(log.parts) > 1 else (0,)
        for part, shift in zip(log.parts if len(log.parts) > 1 else [log], shifts, strict=True):
            for note in self._read(part):
                self._put(moved(note, shift))

    def _read(self, log: Log) -> list[Note]:
        """Return the notes beside one file; without such a file, those in its metadata."""
        path = _place(log)[0]
        if path is None or not path.exists():
            return list(_from_metadata(log))
        content = read_file(path)
        about = content.get("log")
        start = about.get("start_ns") if isinstance(about, Mapping) else None
        if start is not None and start != (log.start or 0):
            name = about.get("name") if isinstance(about, Mapping) else ""
            self.problem = f"{path.name} has notes on another log, {name!r:.100}, that begins at another time"
        try:
            return [Note.read(note) for note in content["notes"]]
        except UsageError as error:
            raise LogError(f"holds something that is no note: {error.text}", path=str(path)) from error

    def __len__(self) -> int:
        return len(self._notes)

    def __getitem__(self, which: Any) -> Any:
        return self._notes[which]

    def __repr__(self) -> str:
        return f"<logreel.Notes on {os.path.basename(self.name)!r}: {len(self)}>"

    def add(
        self,
        begin: Time,
        title: str,
        *,
        end: Time | None = None,
        text: str = "",
        author: str = "",
        colour: str = "",
    ) -> Note:
        """Add a note at *begin*, or from there to *end*, and return it; ``save`` writes it.

        begin, end   as for ``Channel.to_arrow``: ``"12.5s"`` after the start, UTC, or ns of the log's clock
        title, text  one line, and more
        colour       blue, green, orange, purple or red; empty: the usual one

        Raises UsageError for a time that cannot be read and for texts that are too long.
        """
        first = time_ns(begin, self._log)
        last = None if end is None else time_ns(end, self._log)
        created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self.put(Note(first, last, title, text, author, created, colour))

    def put(self, note: Note) -> Note:
        """Add *note*, in place of the one with its id; return it as it is kept. Raises UsageError."""
        checked = note.checked()
        self._put(checked)
        return checked

    def _put(self, note: Note) -> None:
        kept = [other for other in self._notes if other.id != note.id]
        if len(kept) >= COUNT:
            raise UsageError(f"a log has at most {COUNT} notes")
        self._notes = sorted(
            [*kept, note], key=lambda one: (one.begin, one.begin if one.end is None else one.end)
        )

    def remove(self, id: str) -> Note:
        """Remove the note with an id, and return it; raises NotFoundError."""
        for note in self._notes:
            if note.id == id:
                self._notes.remove(note)
                return note
        raise NotFoundError("note", id, [note.id for note in self._notes])

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the file as JSON data."""
        return {
            "logreel": "notes",
            "version": VERSION,
            "log": self._about,
            "notes": [note.as_dict() for note in self._notes],
        }

    def to_json(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=1) + "\n"

    def save(self) -> str:
        """Write the notes to their file beside the log, whole or not at all; return its path.

        Raises UsageError if the log has no place beside it, LogError if the folder cannot be written to.
        """
        if self.path is None:
            raise UsageError(self.why, path=self.name)
        try:
            replace_text(self.path, self.to_json())
        except OSError as error:
            raise LogError(
                f"the notes cannot be written: {error.strerror}",
                path=str(self.path),
                hint="save them elsewhere, or make the folder writable",
            ) from error
        return str(self.path)


def notes(log: Openable | Log) -> Notes:
    """Return the Notes of a log: those in the file beside it, or without one those that an MCAP carries.

    log  an open Log, or anything that ``logreel.open`` takes; of several files as one log, the notes of all

    Raises LogError for a file that holds no notes, or those of a newer version.
    """
    with as_open_log(log) as opened:
        return Notes(opened)


def notes_path(log: str | os.PathLike[str]) -> Path:
    """Return the path of the file with the notes on the log at a path."""
    path = Path(os.path.realpath(log))
    return path.with_name(path.name + SUFFIX)


def moved(note: Note, shift: int) -> Note:
    """Return *note* with *shift* ns added to its times."""
    end = None if note.end is None else note.end + shift
    return replace(note, begin=note.begin + shift, end=end) if shift else note


def _place(log: Log) -> tuple[Path | None, str]:
    """Return the path of the file with the notes on *log*, or None and a sentence why there is none."""
    if len(log.parts) > 1:
        return None, "notes are kept beside one file: open one of the files of this log alone"
    path = log.source.path
    if path is None:
        return None, "notes are kept beside a file, and this log is none on this machine"
    return notes_path(path), ""


def _about(log: Log) -> dict[str, Any]:
    """Return what tells *log* from others: name, bytes, start, and a digest of its first and last 64 KiB."""
    about = {"name": os.path.basename(log.name), "size": log.size, "start_ns": log.start}
    if len(log.parts) > 1 or log.source.path is None:
        return about
    from hashlib import blake2b

    digest = blake2b(log.source.read(0, _ENDS), digest_size=12)
    size = log.source.size
    digest.update(log.source.read(max(0, size - _ENDS), min(size, _ENDS)))
    return {**about, "digest": digest.hexdigest()}


def read_file(path: Path) -> dict[str, Any]:
    """Return the content of a file with notes, whose ``notes`` is a list; raises LogError for any other file."""
    try:
        with open(path, "rb") as file:
            data = file.read(BYTES + 1)
    except OSError as error:
        raise LogError(f"the notes cannot be read: {error.strerror}", path=str(path)) from error
    if len(data) > BYTES:
        raise LogError(f"is no file of notes: it is larger than {BYTES} bytes", path=str(path))
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("logreel") != "notes":
        raise LogError("is no file of notes", path=str(path))
    if content.get("version") != VERSION:
        raise LogError(f"has notes of version {content.get('version')!r:.20}, not {VERSION}", path=str(path))
    listed = content.get("notes")
    if not isinstance(listed, list) or len(listed) > COUNT:
        raise LogError(f"has no list of up to {COUNT} notes", path=str(path))
    return content


# As metadata of an MCAP: one record for each log, a map of text by name.


def metadata_of(listed: Iterable[Note], shift: int = 0) -> dict[str, str]:
    """Return notes as metadata of an MCAP, with *shift* ns added to their times."""
    content = [moved(note, shift).as_dict() for note in listed]
    return {"version": str(VERSION), "notes": json.dumps(content, ensure_ascii=False)}


def _from_metadata(log: Log) -> Iterator[Note]:
    """Yield the notes in the metadata of *log*; what is none is left out, since the log itself cannot be mended."""
    records = log.metadata.get(METADATA, [])
    for record in records if isinstance(records, list) else [records]:
        text = record.get("notes") if isinstance(record, Mapping) else None
        if not isinstance(text, str) or len(text) > BYTES:
            continue
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(text)
            for note in content[:COUNT] if isinstance(content, list) else []:
                with contextlib.suppress(UsageError):
                    yield Note.read(note)
