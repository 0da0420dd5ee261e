"""Logs of formats with an end of their own, cut anywhere: opening them or checking them says so."""

from __future__ import annotations

import pytest

import logreel
from logreel.errors import LogError
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as BddfBuilder
from support.samples.mcap.walk import walk
from support.samples.rosbag.builder import Builder, few, version_2_0
from support.samples.rosbag.old import version_1_2


def small_bddf() -> bytes:
    out = BddfBuilder({"note": "made"})
    say = out.messages("say", "text/plain", "line")
    for i in range(10):
        out.data(say, T0 + i, f"line {i}".encode())
    return out.bytes()


SAMPLES = {
    "bag 1.2": lambda: version_1_2(few()),
    "bag 2.0": lambda: version_2_0(few(), Builder("none", chunk_bytes=400)),
    "bag 2.0 lz4": lambda: version_2_0(few(), Builder("lz4", chunk_bytes=400)),
    "bddf": small_bddf,
    "mcap": lambda: walk(0.5),
}
#: Cuts of larger samples are tried at so many places, all others at each byte.
CUTS = 1500


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cut_at_any_byte_is_a_finding_of_check(name: str) -> None:
    data = SAMPLES[name]()
    usual = {found.code for found in logreel.check(data).worse("warn")}
    assert usual <= {"clock-reset"}, "the whole sample is sound"
    silent = []
    for cut in range(len(data) - 1, 0, -max(1, len(data) // CUTS)):
        try:
            log = logreel.open(data[:cut])
        except LogError:
            continue
        if not log.problems and not {found.code for found in logreel.check(log).worse("warn")} - usual:
            silent.append(cut)
    assert not silent
