"""The samples give exactly what an independent reader found in them, with and without index."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest

import logreel
from conftest import SHARED
from logreel.formats.bddf import scan_builder
from logreel.formats.bddf.reader import Found, Reader
from logreel.formats.bddf.records import Identifier, MessageSeriesType, PodType, StructType
from logreel.formats.bddf.verify import verify_checksum as verify
from logreel.io.source import Source

SAMPLES = SHARED / "data/bddf"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.bddf")) or ["none"]
WITHOUT_INDEX = {"06_killed_no_index", "07_cut_in_payload", "08_cut_in_trailer", "10_offset_zero"}
PROBLEMS = {
    "06_killed_no_index": ["truncated"],
    "07_cut_in_payload": ["truncated"],
    "08_cut_in_trailer": ["truncated"],
}

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no samples of BDDF beside the repository (LOGREEL_SHARED)"
)


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SAMPLES / f"expected/{name}.json").read_text(encoding="utf-8"))
    return found


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.bddf").read_bytes()


def scanned(data: bytes) -> Found:
    return Reader(Source.open(data)).finish()


def blocks_of(data: bytes, found: Found) -> list[list[dict[str, Any]]]:
    """Return the expected values of every block, by series."""
    index = scan_builder.ScanBuilder(Source.open(data), found).index
    table: list[list[dict[str, Any]]] = []
    for channel, series in enumerate(found.series):
        # The messages of a struct series are synthetic.
        n = 0 if isinstance(series.type, StructType) else index.count(channel)
        columns = (index.starts(channel), index.offsets(channel), index.sizes(channel), index.times(channel))
        table.append(
            [
                {
                    "at": at,
                    "timestamp_ns": time,
                    "nbytes": size,
                    "sha1": hashlib.sha1(data[payload : payload + size]).hexdigest(),
                }
                for at, payload, size, time in zip(*(c.tolist() for c in columns), strict=True)
            ]
            if n
            else []
        )
    return table


def same_series(found: Found, wanted: list[dict[str, Any]]) -> None:
    for series, want in zip(found.series, wanted, strict=True):
        assert series.identifier == Identifier(want["identifier"]["series_type"], want["identifier"]["spec"])
        assert series.hash == want["identifier_hash"] == series.identifier.hash
        assert dict(series.annotations) == want["annotations"]
        assert list(series.names) == want["additional_index_names"]
        assert series.description == want["description"]
        kind = series.type
        if isinstance(kind, MessageSeriesType):
            message_type = want["message_type"]
            assert (kind.content_type, kind.name, kind.is_metadata) == tuple(
                message_type[k] for k in ("content_type", "type_name", "is_metadata")
            )
        elif isinstance(kind, PodType):
            assert kind.type.upper() == want["pod_type"]["pod_type"]
            assert list(kind.dimension) == want["pod_type"]["dimension"]
        else:
            assert isinstance(kind, StructType)
            assert dict(kind.members) == want["struct_type"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["open", "scan"])
def test_data_blocks_match_the_manifest(name: str, way: str) -> None:
    data, want = sample(name), expected(name)
    assert hashlib.sha256(data).hexdigest() == want["sha256"]
    found = scanned(data) if way == "scan" else scan_builder.find(Source.open(data))
    assert found.indexed == (way == "open" and name not in WITHOUT_INDEX)
    same_series(found, want["series"])
    keys = ("at", "timestamp_ns", "nbytes", "sha1")
    assert blocks_of(data, found) == [[{k: b[k] for k in keys} for b in s["blocks"]] for s in want["series"]]
    assert [p.code for p in found.problems] == PROBLEMS.get(name, [])
    assert list(found.file.version) == want["file"]["version"]
    assert dict(found.file.annotations) == want["file"]["annotations"]
    assert found.file.checksum == want["file"]["checksum_type"]
    if name not in PROBLEMS:
        assert found.ending is not None
        assert found.ending.index == want["end"]["index_offset"]
        assert found.ending.digest.hex() == want["end"]["checksum"]


@pytest.mark.parametrize("name", NAMES)
def test_channels_match_the_manifest(name: str) -> None:
    log = logreel.open(sample(name))
    for ch, want in zip(log.channels.values(), expected(name)["series"], strict=False):
        if "struct_type" in want:
            continue
        blocks = want["blocks"]
        assert len(ch) == len(blocks)
        assert ch.times.tolist() == [b["timestamp_ns"] for b in blocks]
        messages = list(log.messages(ch.topic, order="file"))
        assert [len(m.data) for m in messages] == [b["nbytes"] for b in blocks]
        assert [hashlib.sha1(m.data).hexdigest() for m in messages] == [b["sha1"] for b in blocks]
        for i, label in enumerate(want["additional_index_names"]):
            values = [b["additional_indexes"][i] for b in blocks]
            assert ch.to_arrow([label]).column(label).to_pylist() == values
            assert [m.decode()[label] for m in messages] == values
        if "pod_type" not in want:
            continue
        table = ch.to_arrow()
        counts = [b["samples"] for b in blocks]
        assert table["sample"].to_pylist() == [i for n in counts for i in range(n)]
        assert np.array_equal(
            np.asarray(table["time"].cast("int64")), np.repeat([b["timestamp_ns"] for b in blocks], counts)
        )
        values = ch["value"]
        shape = tuple(want["pod_type"]["dimension"])
        assert values.shape == (sum(counts), *shape)  # type: ignore[attr-defined]
        known = [v for b in blocks for v in b.get("values", [])]
        if known:
            assert list(map(plain, values.reshape(-1).tolist())) == list(map(plain, known))  # type: ignore[attr-defined]
        unit = want["annotations"].get("units")
        assert (table.schema.field("value").metadata or {}).get(b"unit", b"").decode() == (unit or "")


def plain(value: Any) -> str:
    """Return a number as text, equal for equal numbers including NaN."""
    return repr(float(value)) if isinstance(value, (float, str)) else repr(value)


def test_checksums_of_samples_are_verified() -> None:
    for name in NAMES:
        found = [(f.code, f.severity) for f in verify(Source.open(sample(name)))]
        if name == "09_bad_checksum":
            assert found == [("checksum", "error")]
        elif name in PROBLEMS or name == "11_checksum_none":
            assert found == [("checksum", "note")]
        else:
            assert not found, name


def test_truncated_payload_is_not_shown() -> None:
    log = logreel.open(sample("07_cut_in_payload"))
    assert [len(ch) for ch in log.channels.values()] == [10, 9]
    (problem,) = log.problems
    assert problem.lost
    assert problem.offset + problem.size == log.size
