"""Episodes of one log: which frames they have, from which messages, and with which error in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text, seconds_text
from logreel.ops.query.align import regular_times
from logreel.outputs.dataset.episodes import Stretch, stretches
from logreel.outputs.dataset.sampling import NEVER, U64, PicturePicker, Sampled, VectorSampler
from logreel.outputs.dataset.spec import Feature, Spec

#: Reasons that are kept for one log.
MOST_NOTES = 20


@dataclass(frozen=True)
class Planned:
    """An episode that may be written.

    times      int64[n] ns of the frames, on the clock of the log
    vectors    by feature, at these times
    pictures   by feature: int64[n] ns of the message of each frame
    errors     by feature: uint64[n] ns between frame and message
    dropped    frames that were left out between the first and the last one
    stretch    the interval that it is from, and its number
    frames     int64[n]: numbers of the frames in that interval
    """

    times: I64
    vectors: Mapping[str, NDArray[np.float64]]
    pictures: Mapping[str, I64]
    errors: Mapping[str, U64]
    stretch: Stretch
    frames: I64

    @property
    def dropped(self) -> int:
        """Number of frames between the first and the last one that were left out."""
        return int(self.frames[-1] - self.frames[0] + 1 - len(self.frames))


@dataclass
class LogPlan:
    """Samples one log; *broken*: by topic, times of messages whose pictures cannot be used.

    notes    sentences about frames that the bounds of the specification leave out
    skipped  sentences about what is lost
    """

    log: Log
    spec: Spec
    broken: dict[str, set[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.samplers = {
            one.name: VectorSampler(self.log, one) for one in self.spec.features if not one.pictures
        }
        self.pickers = {one.name: PicturePicker(self.log, one) for one in self.spec.features if one.pictures}

    def stretches(self) -> Iterator[SampledStretch]:
        """Yield the intervals of the log, sampled one after another."""
        found = stretches(self.log, self.spec)
        if not found:
            self.note("no episode in this log")
        for one in found:
            count, moments = regular_times(self.log, one.start, one.end, self.spec.rate)
            yield SampledStretch(self, one, moments(0, count))

    def note(self, text: str, lost: bool = False) -> None:
        """Keep a sentence; *lost*: about data that should have been used."""
        kept = self.skipped if lost else self.notes
        if len(kept) < MOST_NOTES:
            kept.append(text)


class SampledStretch:
    """One interval of a log with values at all of its frames."""

    def __init__(self, plan: LogPlan, stretch: Stretch, times: I64) -> None:
        self.plan, self.stretch, self.times = plan, stretch, times
        self.vectors: dict[str, Sampled] = {name: one.at(times) for name, one in plan.samplers.items()}
        self.pictures = {name: one.at(times) for name, one in plan.pickers.items()}

    def good(self) -> NDArray[np.bool_]:
        """Return bool[n]: frames for which every feature has a value within its bound."""
        found = np.ones(len(self.times), np.bool_)
        for one in self.plan.spec.features:
            found &= self._within(one)
        return found

    def _within(self, feature: Feature) -> NDArray[np.bool_]:
        found = self._errors(feature.name) <= np.uint64(feature.max_error)
        if feature.pictures:
            broken = self.plan.broken.get(self.plan.pickers[feature.name].ch.topic)
            if broken:
                found &= ~np.isin(self.pictures[feature.name][0], np.array(sorted(broken), np.int64))
        return found

    def _errors(self, name: str) -> U64:
        return self.vectors[name].errors if name in self.vectors else self.pictures[name][1]

    def parts(self, among: I64 | None = None) -> list[I64]:
        """Return the frames of each episode, as numbers in this interval; what is left out is noted.

        among  consider only these frames; None: all
        """
        good = self.good()
        considered = np.arange(len(self.times)) if among is None else among
        bad = considered[~good[considered]]
        if len(bad) and among is None:
            self._note(bad, bool(len(bad) == len(considered)) or self.plan.spec.beyond == "fail")
        beyond = self.plan.spec.beyond
        if beyond == "fail":
            found = [] if len(bad) else [considered]
        elif beyond == "drop":
            found = [considered[good[considered]]]
        else:
            kept = considered[good[considered]]
            found = np.split(kept, np.flatnonzero(np.diff(kept) != 1) + 1)
        period = SECOND / self.plan.spec.rate
        least = self.plan.spec.episodes.min_length
        long = [one for one in found if len(one) and len(one) * period >= least]
        short = sum(len(one) for one in found) - sum(map(len, long))
        if short:
            self.plan.note(
                f"{self._place()}: left out {short} frames in pieces shorter than {duration_text(least)}"
            )
        return long

    def _place(self) -> str:
        start = self.plan.log.start or 0
        return f"episode at +{seconds_text(self.stretch.start - start, 3)} s"

    def _note(self, bad: I64, lost: bool) -> None:
        """Note how many frames are too far from messages, for the features of which that is so."""
        reasons = []
        for one in self.plan.spec.features:
            wrong = bad[~self._within(one)[bad]]
            if not len(wrong):
                continue
            worst = self._errors(one.name)[wrong]
            known = worst[worst != NEVER]
            far = f", worst {duration_text(int(known.max()))}" if len(known) else ""
            reasons.append(
                f"{one.name} has no value within {duration_text(one.max_error)} for {len(wrong)}{far}"
            )
        what = "all frames left out, because of" if self.plan.spec.beyond == "fail" else "left out"
        text = f"{self._place()}: {what} {len(bad)} of {len(self.times)} frames: {'; '.join(reasons)}"
        self.plan.note(text, lost)

    def episode(self, frames: I64) -> Planned:
        """Return the episode of some of the frames."""
        return Planned(
            self.times[frames],
            {name: one.values[frames] for name, one in self.vectors.items()},
            {name: some[frames] for name, (some, _) in self.pictures.items()},
            {one.name: self._errors(one.name)[frames] for one in self.plan.spec.features},
            self.stretch,
            frames,
        )


def sync_data(spec: Spec, planned: Planned) -> dict[str, Any]:
    """Return the error in time of each feature of an episode as JSON data: largest and mean, in ns."""
    return {
        one.name: {
            "method": one.method,
            "offset_ns": one.offset,
            "bound_ns": one.max_error,
            "max_ns": int(planned.errors[one.name].max()),
            "mean_ns": round(float(planned.errors[one.name].astype(np.float64).mean()), 3),
        }
        for one in spec.features
    }
