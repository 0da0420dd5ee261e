"""The suite that a log format inherits."""

from __future__ import annotations

import io
import os
import tempfile
import unittest
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from logreel.errors import DefinitionError, LogError, UnsupportedError
from logreel.io.chunks import FILE
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.log.log import Log
from logreel.ops.replay import Player
from logreel.ops.replay.timeline import Place, Timeline
from logreel.outputs.live.frames import Frames
from logreel.registry.format import Format
from logreel.registry.registry import formats
from logreel.testing.judge import expect, is_consistent, lie_inside, no_hang, opened_as, payloads, rows
from logreel.testing.mutations import mutate
from logreel.write.log_copier import copier_for
from logreel.write.writer import create

#: A sample: its bytes, a file, or a function that gives bytes.
Sample = bytes | str | os.PathLike[str] | Callable[[], bytes]
START = 1_700_000_000 * 10**9


class FormatSuite:
    """Tests that a log format has to pass.

    Inherit it in a class named ``Test…``, set *format* and *samples*, and let pytest collect the class; for unittest
    inherit unittest.TestCase, too; without a test runner call ``run_all``. Each test raises AssertionError where the
    format fails, and unittest.SkipTest where the test does not apply.

    format     the Format
    samples    sound logs, at least one that is small; none: that of the format
    options    for ``create``, of files that are written
    cuts       places at which each sample is cut; where it has no more bytes than this, every one
    mutations  ways in which each sample is damaged
    always     channels of which every log of the format has messages, whatever topics it was sliced by
    sequences  sequences of operations (open, slice, sort, merge, recover) that begin with the smallest sample
    """

    format: Format
    samples: Sequence[Sample] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - one for all on purpose
    cuts = 1000
    mutations = 200
    always: Sequence[str] = ()
    sequences = 25

    @classmethod
    def run_all(cls) -> dict[str, str]:
        """Run all tests without a test runner; return ``passed`` or ``skipped: REASON`` by test; raise at a failure."""
        found = {}
        for name in sorted(name for name in dir(cls) if name.startswith("test_")):
            try:
                getattr(cls(), name)()
            except unittest.SkipTest as reason:
                found[name] = f"skipped: {reason}"
            else:
                found[name] = "passed"
        return found

    # ---------------------------------------------------------------------------------------------- samples

    @cached_property
    def _data(self) -> list[bytes]:
        given = self.samples or ((self.format.sample,) if self.format.sample is not None else ())
        expect(given, "there are no samples")
        return [_bytes(one) for one in given]

    def _logs(self) -> Iterator[Log]:
        for data in self._data:
            yield opened_as(self.format, data)

    # ---------------------------------------------------------------------------------------------- reading

    def test_it_knows_its_own(self) -> None:
        """It recognises its samples, nothing else, and says so without an exception."""
        for data in self._data:
            expect(self.format.sniff(Source.open(data)), "it does not recognise a sample")
        others = [begin for name, begin in _begins().items() if name != self.format.name]
        for data in (b"\0", b"\xff" * 100, b"no log at all\n" * 300, bytes(range(256)) * 16, *others):
            expect(not self.format.sniff(Source.open(data)), f"it takes {data[:16]!r} for its own")

    def test_samples_are_sound(self) -> None:
        """Samples hold messages, no problems, and do not contradict themselves."""
        for log in self._logs():
            is_consistent(log)
            expect(log.format == self.format.name, "another name than that of the format")
            expect(not log.problems, f"a sample has problems: {log.problems[:1]}")
            expect(log.message_count > 0, "a sample without messages")

    def test_counts_and_times(self) -> None:
        """Messages come by time and in the order of the file, whole and cut in two, as often as they are counted."""
        for log in self._logs():
            times = [m.time for m in log.messages()]
            expect(len(times) == log.message_count, "not as many messages as are counted")
            expect(times == sorted(times), "messages do not come in the order of time")
            expect(
                [m.time for m in log.messages(reverse=True)] == times[::-1], "the reverse is another order"
            )
            for ch in log.match(None):
                own = np.array([m.time for m in log.messages([ch.topic], order="file")], np.int64)
                expect(
                    np.array_equal(own, ch.times), f"{ch.topic!r}: times differ from those of its messages"
                )
            middle = times[len(times) // 2]
            halves = [log.messages(end=middle), log.messages(start=middle)]
            expect(
                [m.time for half in halves for m in half] == times, "an interval cut in two is not the whole"
            )

    def test_played_back(self) -> None:
        """A replay gives the messages of the log, backwards in the opposite order, and its frames can be told of."""
        for log in self._logs():
            messages = list(log.messages())
            expect(list(Player(log, rate=0)) == messages, "a replay gives other messages than the log")
            line = Timeline([log])
            runs = line.runs(line.facing(Place(messages[-1].time + 1), -1))
            back = [message for run in runs for message in run.messages()]
            expect(back == messages[::-1], "a replay backwards has another order")
            out = io.BytesIO()
            Player(log, rate=0, sink=Frames(out)).run()
            expect(out.getvalue(), "frames are told of without a word")

    def test_payloads_lie_in_the_file(self) -> None:
        """Every payload lies inside of its bytes, and messages in the file do not overlap."""
        for log in self._logs():
            spans: list[tuple[int, int]] = []
            for ch in log.channels.values():
                lie_inside(ch)
                index = log.index
                here = index.chunk_of(ch.number) == FILE
                offset, size = index.offsets(ch.number)[here], index.sizes(ch.number)[here]
                spans += zip(offset.tolist(), (offset + size).tolist(), strict=True)
            for (_, end), (start, _) in pairwise(sorted(span for span in spans if span[0] < span[1])):
                expect(end <= start, "two messages share bytes")

    def test_every_message_decodes(self) -> None:
        """Every message of a sample decodes, to the fields that its channel names, as tables do."""
        for log in self._logs():
            for ch in log.match(None):
                table = ch.to_arrow(explode=False)
                expect(table.num_rows == len(ch), f"{ch.topic!r}: not a row for each message")
            for message in log.messages():
                expect(isinstance(message.decode(), dict), "a message that does not decode")

    # ----------------------------------------------------------------------------------------------- damage

    def test_cut_anywhere(self) -> None:
        """Cut at any byte, what is left is read, nothing is invented, and what is lost before the cut is told."""
        for data in self._data:
            sound = opened_as(self.format, data)
            known, places = payloads(sound), _ends(sound)
            for cut in _spread(len(data), self.cuts):
                try:
                    with no_hang():
                        log = opened_as(self.format, data[:cut])
                        is_consistent(log)
                except LogError:
                    continue
                found = payloads(log)
                expect(found <= known, f"cut at {cut}: there are messages that never were")
                missing = Counter({p: n for p, n in places(cut).items() if n > found[p]})
                told = any(problem.lost for problem in log.problems)
                expect(
                    told or not missing,
                    f"cut at {cut}: {missing.total()} messages before it are gone, untold",
                )

    def test_damaged_anyhow(self) -> None:
        """Whatever happens to a file, it is refused or read, with nothing worse than a LogError."""
        for data in self._data:
            for seed in range(self.mutations):
                try:
                    with no_hang():
                        is_consistent(opened_as(self.format, mutate(data, seed)))
                except LogError:
                    continue
                except Exception as error:
                    raise AssertionError(f"mutation {seed}: {error!r}") from error

    # ---------------------------------------------------------------------------------------------- writing

    def test_simple_messages_come_back(self) -> None:
        """What is written as dicts is read back, where the format can define types."""
        self._need_writer()
        node = Struct((Field("x", Scalar("float64")), Field("n", Scalar("int64"))))
        due = [(START + i * 10**6, {"x": i / 2, "n": i}) for i in range(100)]
        with self._folder() as folder:
            path = folder / f"a{self.format.suffixes[0]}"
            with create(path, format=self.format.name, **self.options) as w:
                try:
                    number = w.add_channel("simple", Layout(node))
                except (DefinitionError, UnsupportedError) as error:
                    raise unittest.SkipTest(f"no types of its own: {error}") from None
                for time, data in due:
                    w.write(number, time, data)
            log = self._reopened(path)
            found = [(m.time, {k: m.decode()[k] for k in "xn"}) for m in log.messages()]
            expect(found == due, "what is read is not what was written")

    def test_written_and_read_again(self) -> None:
        """A sample written message by message, in the order of the file, is the same log."""
        self._need_writer()
        with self._folder() as folder:
            for log in self._logs():
                path = folder / f"again{self.format.suffixes[0]}"
                options = {**self.format.like(log.metadata), **self.options}
                with create(path, format=self.format.name, force=True, **options) as w:
                    copier_for(self.format, w.format_writer).copy_metadata(log)
                    numbers = {
                        ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in log.match(None)
                    }
                    for message in log.messages(order="file"):
                        w.write(numbers[message.channel.topic], message.time, message.data)
                expect(rows(self._reopened(path)) == rows(log), "written again, it holds something else")

    def test_slices_and_merges_compose(self) -> None:
        """A slice of everything is the log, and the parts of a log merged are the log in the order of time."""
        from logreel.ops.rewrite.merge import merge
        from logreel.ops.rewrite.slice import slice_log, sort_log, split

        self._need_writer()
        suffix = self.format.suffixes[0]
        with self._folder() as folder:
            for n, log in enumerate(self._logs()):
                whole, ordered, merged = (
                    folder / f"{name}{n}{suffix}" for name in ("whole", "sorted", "merged")
                )
                slice_log(log, whole)
                expect(rows(self._reopened(whole)) == rows(log), "a slice of everything is not the log")
                sort_log(log, ordered)
                every = max(1, ((log.end or 0) - (log.start or 0)) // 3)
                parts = split(log, folder / f"parts{n}", every=every)
                expect(sum(p.messages for p in parts) == log.message_count, "the parts are not the whole")
                merge([part.path for part in parts], merged)
                both = rows(self._reopened(merged), "time"), rows(self._reopened(ordered), "time")
                expect(both[0] == both[1], "the parts merged are not the log in the order of time")

    def test_recovered_from_a_cut(self) -> None:
        """Recovered from a cut file, there is a sound log of every message that can be read."""
        from logreel.ops.rewrite.recover import recover

        self._need_writer()
        with self._folder() as folder:
            for data in self._data:
                for cut in _spread(len(data), 5)[1:]:
                    try:
                        log = opened_as(self.format, data[:cut])
                    except LogError:
                        continue
                    path = folder / f"saved{self.format.suffixes[0]}"
                    done = recover(log, path, force=True)
                    saved = self._reopened(path)
                    expect(payloads(saved) == payloads(log), f"cut at {cut}: not what could be read")
                    lost = any(p.lost for p in log.problems)
                    expect(lost == bool(done.lost), f"cut at {cut}: the ledger is not what was lost")

    def test_operations_in_any_order(self) -> None:
        """Slicing, sorting, merging and recovering, in any order, give what they give for a list of messages."""
        self._need_writer()
        try:
            from logreel.testing.operations import check_operations
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            raise unittest.SkipTest("hypothesis is not installed") from None
        check_operations(self.format, min(self._data, key=len), self.sequences, self.always)

    def test_appended(self) -> None:
        """Messages appended to a log follow those that it had."""
        raise unittest.SkipTest("logreel cannot append to an existing log yet")

    def test_to_mcap_and_back(self) -> None:
        """Converted to MCAP, messages have the same times and payloads; and converted back, where it can be written."""
        from logreel.outputs.convert import convert
        from logreel.registry.open import open_log

        mcap = formats().get("mcap")
        if mcap is None or mcap.create is None or mcap.name == self.format.name:
            raise unittest.SkipTest("there is no other format MCAP that can be written")
        self._need_registered()
        with self._folder() as folder:
            for log in self._logs():
                path = folder / f"a{mcap.suffixes[0]}"
                convert(log, path, raw=True, force=True)
                expect(rows(open_log(path)) == rows(log), "as MCAP it holds something else")
                if self.format.create is not None:
                    back = folder / f"back{self.format.suffixes[0]}"
                    convert(path, back, force=True)
                    expect(rows(self._reopened(back)) == rows(log), "back from MCAP it holds something else")

    # -------------------------------------------------------------------------------------------- what else

    def _reopened(self, path: Path) -> Log:
        log = opened_as(self.format, path.read_bytes())
        expect(not log.problems, f"the new file has problems: {log.problems[:1]}")
        return log

    def _need_registered(self) -> None:
        if formats().get(self.format.name) is not self.format:
            raise unittest.SkipTest(f"{self.format.name} is not registered: it needs an entry point")

    def _need_writer(self) -> None:
        if self.format.create is None:
            raise unittest.SkipTest(f"{self.format.name} cannot be written")
        self._need_registered()

    @staticmethod
    @contextmanager
    def _folder() -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)


@cache
def _begins() -> dict[str, bytes]:
    """How the samples of all formats begin."""
    return {f.name: f.sample()[:100_000] for f in formats().values() if f.sample is not None}


def _bytes(sample: Sample) -> bytes:
    if isinstance(sample, bytes):
        return sample
    return Path(sample).read_bytes() if isinstance(sample, str | os.PathLike) else sample()


def _spread(size: int, count: int) -> list[int]:
    """*count* places from 0 to *size*, or all there are."""
    return sorted(set(np.linspace(0, size, min(size + 1, count + 1)).astype(int).tolist()))


def _ends(log: Log) -> Callable[[int], Counter[bytes]]:
    """A function that gives the payloads which end at or before a place of the file; packed ones with their chunk."""
    chunks, found = log.index.chunks, list[tuple[int, bytes]]()
    pieces = list(log.index.select_batches([ch.number for ch in log.match(None)], order="file"))
    places = sorted({chunks.place_of(c) for piece in pieces for c in piece.chunk.tolist() if c != FILE})
    # Where a packed chunk ends is not told: the next one begins behind it.
    behind = dict(pairwise([*places, log.size]))
    for piece in pieces:
        spans = zip(piece.chunk.tolist(), piece.offset.tolist(), piece.size.tolist(), strict=True)
        for chunk, start, size in spans:
            end = start + size if chunk == FILE else behind[chunks.place_of(chunk)]
            found.append((end, bytes(chunks.view(chunk)[start : start + size])))
    found.sort()
    return lambda cut: Counter(payload for end, payload in found if end <= cut)
