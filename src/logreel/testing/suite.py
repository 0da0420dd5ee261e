"""Test suite for log formats."""

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
from logreel.io.source import FILE, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.log.log import Log
from logreel.ops.replay import Player
from logreel.ops.replay.timeline import PlayPosition, Timeline
from logreel.outputs.sinks.stdout import FrameLines
from logreel.registry.format import Format
from logreel.registry.registry import formats
from logreel.testing.judge import (
    check_consistency,
    check_continued,
    check_payload_bounds,
    expect,
    later,
    no_hang,
    opened_as,
    payloads,
    rows,
)
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
    samples    undamaged logs, at least one of them small; empty: ``Format.sample``
    options    keyword arguments for ``create``
    cuts       number of positions at which each sample is cut; all for samples with fewer bytes
    mutations  number of ways in which each sample is damaged
    always     channels with messages in every log of the format, even if sliced by other topics
    completed  channels whose last message is completed by those after it, such as frames with durations
    sequences  sequences of operations (open, slice, sort, merge, recover, append) that begin with the smallest sample
    """

    format: Format
    samples: Sequence[Sample] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - one for all on purpose
    cuts = 1000
    mutations = 200
    always: Sequence[str] = ()
    completed: Sequence[str] = ()
    sequences = 25

    @classmethod
    def run_all(cls) -> dict[str, str]:
        """Run all tests without a test runner; return ``passed`` or ``skipped: REASON`` by test; raise at a failure."""
        results = {}
        for name in sorted(name for name in dir(cls) if name.startswith("test_")):
            try:
                getattr(cls(), name)()
            except unittest.SkipTest as reason:
                results[name] = f"skipped: {reason}"
            else:
                results[name] = "passed"
        return results

    # ---------------------------------------------------------------------------------------------- samples

    @cached_property
    def _data(self) -> list[bytes]:
        samples = self.samples or ((self.format.sample,) if self.format.sample is not None else ())
        expect(samples, "there are no samples")
        return [_bytes(sample) for sample in samples]

    def _logs(self) -> Iterator[Log]:
        for data in self._data:
            yield opened_as(self.format, data)

    # ---------------------------------------------------------------------------------------------- reading

    def test_it_knows_its_own(self) -> None:
        """``sniff`` recognises the samples and nothing else, and never raises."""
        for data in self._data:
            expect(self.format.sniff(Source.open(data)), "it does not recognise a sample")
        others = [begin for name, begin in _begins().items() if name != self.format.name]
        for data in (b"\0", b"\xff" * 100, b"no log at all\n" * 300, bytes(range(256)) * 16, *others):
            expect(not self.format.sniff(Source.open(data)), f"it takes {data[:16]!r} for its own")

    def test_samples_are_sound(self) -> None:
        """Samples have messages and no problems, and are consistent."""
        for log in self._logs():
            check_consistency(log)
            expect(log.format == self.format.name, "another name than that of the format")
            expect(not log.problems, f"a sample has problems: {log.problems[:1]}")
            expect(log.message_count > 0, "a sample without messages")

    def test_counts_and_times(self) -> None:
        """Counts, times, order and intervals of messages agree."""
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
        """A replay yields the messages of the log, backwards in reverse order, and its frames can be described."""
        for log in self._logs():
            messages = list(log.messages())
            expect(list(Player(log, rate=0)) == messages, "a replay gives other messages than the log")
            line = Timeline([log])
            runs = line.runs(line.facing(PlayPosition(messages[-1].time + 1), -1))
            back = [message for run in runs for message in run.messages()]
            expect(back == messages[::-1], "a replay backwards has another order")
            out = io.BytesIO()
            Player(log, rate=0, sink=FrameLines(out)).run()
            expect(out.getvalue(), "a description of a frame is empty")

    def test_payloads_lie_in_the_file(self) -> None:
        """All payloads are inside of their chunks, and messages in the file do not overlap."""
        for log in self._logs():
            spans: list[tuple[int, int]] = []
            for ch in log.channels.values():
                check_payload_bounds(ch)
                index = log.index
                here = index.chunk_of(ch.number) == FILE
                offset, size = index.offsets(ch.number)[here], index.sizes(ch.number)[here]
                spans += zip(offset.tolist(), (offset + size).tolist(), strict=True)
            for (_, end), (start, _) in pairwise(sorted(span for span in spans if span[0] < span[1])):
                expect(end <= start, "two messages share bytes")

    def test_every_message_decodes(self) -> None:
        """All messages of the samples decode, one by one and as tables."""
        for log in self._logs():
            for ch in log.match(None):
                table = ch.to_arrow(explode=False)
                expect(table.num_rows == len(ch), f"{ch.topic!r}: not a row for each message")
            for message in log.messages():
                expect(isinstance(message.decode(), dict), "a message that does not decode")

    # ----------------------------------------------------------------------------------------------- damage

    def test_cut_anywhere(self) -> None:
        """A file cut at any byte is refused, or read with only known messages and no unreported loss before the cut."""
        for data in self._data:
            sound = opened_as(self.format, data)
            known, places = payloads(sound), _ends(sound)
            for cut in _spread(len(data), self.cuts):
                try:
                    with no_hang():
                        log = opened_as(self.format, data[:cut])
                        check_consistency(log)
                except LogError:
                    continue
                read = payloads(log)
                expect(read <= known, f"cut at {cut}: there are messages that never were")
                missing = Counter({p: n for p, n in places(cut).items() if n > read[p]})
                reported = any(problem.lost for problem in log.problems)
                expect(
                    reported or not missing,
                    f"cut at {cut}: {missing.total()} messages before it are gone, untold",
                )

    def test_damaged_anyhow(self) -> None:
        """A damaged file is read, or refused with a LogError."""
        for data in self._data:
            for seed in range(self.mutations):
                try:
                    with no_hang():
                        check_consistency(opened_as(self.format, mutate(data, seed)))
                except LogError:
                    continue
                except Exception as error:
                    raise AssertionError(f"mutation {seed}: {error!r}") from error

    # ---------------------------------------------------------------------------------------------- writing

    def test_simple_messages_come_back(self) -> None:
        """Messages written as dicts are read back, if the format can define types."""
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
            read = [(m.time, {k: m.decode()[k] for k in "xn"}) for m in log.messages()]
            expect(read == due, "what is read is not what was written")

    def test_written_and_read_again(self) -> None:
        """A sample written message by message in file order has the same messages."""
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
        """A slice of everything equals the log, and the merged parts of a log equal the sorted log."""
        from logreel.ops.rewrite.slice import slice_log, sort_log
        from logreel.ops.rewrite.split import split
        from logreel.outputs.merge_formats import merge

        self._need_writer()
        suffix = self.format.suffixes[0]
        with self._folder() as folder:
            for n, log in enumerate(self._logs()):
                everything, ordered, merged = (
                    folder / f"{name}{n}{suffix}" for name in ("whole", "sorted", "merged")
                )
                slice_log(log, everything)
                expect(rows(self._reopened(everything)) == rows(log), "a slice of everything is not the log")
                sort_log(log, ordered)
                every = max(1, ((log.end or 0) - (log.start or 0)) // 3)
                parts = split(log, folder / f"parts{n}", every=every)
                expect(sum(p.messages for p in parts) == log.message_count, "the parts are not the whole")
                # A log without messages may have no bytes, and then it is of no format.
                merge([part.path for part in parts if part.messages], merged)
                both = rows(self._reopened(merged), "time"), rows(self._reopened(ordered), "time")
                expect(both[0] == both[1], "the parts merged are not the log in the order of time")

    def test_recovered_from_a_cut(self) -> None:
        """Recovery of a cut file writes an undamaged log of all messages that can be read."""
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
        """Slicing, sorting, merging and recovering, in any order, have the same results as on a list of messages."""
        self._need_writer()
        try:
            from logreel.testing.operations import check_operations
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            raise unittest.SkipTest("hypothesis is not installed") from None
        check_operations(self.format, min(self._data, key=len), self.sequences, self.always, self.completed)

    def test_appended(self) -> None:
        """Messages appended to a log follow its existing ones, also in the unfinished file."""
        self._need_append()
        with self._folder() as folder:
            for n, data in enumerate(self._data):
                path, log = folder / f"a{n}{self.format.suffixes[0]}", opened_as(self.format, data)
                path.write_bytes(data)
                before, due = rows(log), later(log, log.messages(order="file"))
                with create(path, mode="a", format=self.format.name) as w:
                    for ch, time, payload in due:
                        w.write(w.add_channel(ch.topic, ch.schema, ch.metadata), time, payload)
                    w.flush()
                    active = opened_as(self.format, path.with_name(f"{path.name}.active").read_bytes())
                    expect(not any(p.lost for p in active.problems), "the unfinished file is damaged")
                    check_continued(active, before, due, self.completed)
                    expect(path.read_bytes() == data, "the old log changed before the new one was complete")
                new = self._reopened(path)
                check_continued(new, before, due, self.completed)
                expect(new.start == log.start, "the start is not that of the old log")
                last = max(time for _, time, _ in due)
                expect((new.end or 0) >= last, "the end is not that of the new messages")
                # The offset may follow from all messages of a channel, of which some are repeated now.
                same = new.epoch == log.epoch and (new.utc_offset is None) == (log.utc_offset is None)
                expect(same, "the clock changed")

    def test_nothing_appended(self) -> None:
        """A log to which nothing is appended stays as it is."""
        self._need_append()
        with self._folder() as folder:
            for n, data in enumerate(self._data):
                path = folder / f"a{n}{self.format.suffixes[0]}"
                path.write_bytes(data)
                with create(path, mode="a", format=self.format.name) as w:
                    for ch in opened_as(self.format, data).match(None):
                        w.add_channel(ch.topic, ch.schema, ch.metadata)
                expect(path.read_bytes() == data, "the file changed")
                expect(list(folder.glob("*.active")) == [], "there is still an unfinished file")

    def test_to_mcap_and_back(self) -> None:
        """Conversion to MCAP keeps times and payloads, and so does conversion back if the format can be written."""
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

    # ---------------------------------------------------------------------------------------------- helpers

    def _reopened(self, path: Path) -> Log:
        log = opened_as(self.format, path.read_bytes())
        expect(not log.problems, f"the new file has problems: {log.problems[:1]}")
        return log

    def _need_registered(self) -> None:
        if formats().get(self.format.name) is not self.format:
            raise unittest.SkipTest(f"{self.format.name} is not registered: it needs an entry point")

    def _need_append(self) -> None:
        self._need_writer()
        if self.format.append is None:
            raise unittest.SkipTest(f"logs of the format {self.format.name} cannot be continued")

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
    """Return the first bytes of logs of other formats, by name: of samples, else of what the formats write."""
    begins = {}
    for fmt in formats().values():
        if fmt.sample is not None:
            begins[fmt.name] = fmt.sample()[:100_000]
        elif fmt.create is not None:
            out = io.BytesIO()
            create(out, format=fmt.name).close()
            begins[fmt.name] = out.getvalue()
    return begins


def _bytes(sample: Sample) -> bytes:
    if isinstance(sample, bytes):
        return sample
    return Path(sample).read_bytes() if isinstance(sample, str | os.PathLike) else sample()


def _spread(size: int, count: int) -> list[int]:
    """Return *count* positions from 0 to *size*, or all if there are fewer."""
    return sorted(set(np.linspace(0, size, min(size + 1, count + 1)).astype(int).tolist()))


def _ends(log: Log) -> Callable[[int], Counter[bytes]]:
    """Return a function from a file position to the payloads that end before it; compressed ones with their chunk."""
    chunks, ends = log.index.chunks, list[tuple[int, bytes]]()
    batches = list(log.index.select_batches([ch.number for ch in log.match(None)], order="file"))
    places = sorted({chunks.place_of(c) for batch in batches for c in batch.chunk.tolist() if c != FILE})
    # The end of a compressed chunk is unknown: use the start of the next one.
    behind = dict(pairwise([*places, log.size]))
    for batch in batches:
        spans = zip(batch.chunk.tolist(), batch.offset.tolist(), batch.size.tolist(), strict=True)
        for chunk, start, size in spans:
            end = start + size if chunk == FILE else behind[chunks.place_of(chunk)]
            ends.append((end, bytes(chunks.view(chunk)[start : start + size])))
    ends.sort()
    return lambda cut: Counter(payload for end, payload in ends if end <= cut)
