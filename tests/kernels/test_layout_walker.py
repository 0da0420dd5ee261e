"""The Layout walker against the oracle: any Layout, any bytes."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import layout as kernel
from logreel.layout import nodes
from logreel.layout import program as walking
from logreel.layout.arrow import Decoded, decode_variable
from logreel.layout.layout import Layout
from logreel.layout.program import compile_layout, extent, measuring
from logreel.layout.projection import Projection
from support.builders.arrows import plain, rows_of, same
from support.builders.strategies import layouts, payloads
from support.harness.examples import examples
from support.harness.guard import guarded
from support.oracles.layout_walker import Short, decode_all


def laid(messages: list[bytes], gap: bytes = b"\xee") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Messages in one buffer with a byte between them, the last one at its very end."""
    sizes = np.array([len(m) for m in messages], np.int64)
    stop = np.cumsum(sizes + len(gap)) - len(gap)
    return guarded(gap.join(messages)), stop - sizes, stop


def walked(layout: Layout, messages: list[bytes], fields=None, explode: bool = True) -> Decoded:
    projection = Projection(layout, fields)
    got = decode_variable(projection, *laid(messages), explode)
    for array in got.arrays:
        array.validate(full=True)
    assert [a.type for a in got.arrays] == [f.type for f in projection.arrow_fields(explode)]
    return got


def judge(layout: Layout, messages: list[bytes]) -> None:
    """The walker keeps what the oracle can decode, says so of the rest, and both see the same values."""
    values, kept, leftover = [], [], []
    for i, message in enumerate(messages):
        try:
            value, left = decode_all(layout.root, message)
        except Short:
            continue
        kept.append(i)
        values.append(value)
        leftover += [i] if left else []
    got = walked(layout, messages)
    assert [row for row, _ in got.bad] == [i for i in range(len(messages)) if i not in kept]
    assert (list(range(len(messages))) if got.kept is None else got.kept.tolist()) == kept
    assert got.leftover.tolist() == leftover
    many = isinstance(layout.root, nodes.Sequence)
    rows = [record for value in values for record in value] if many else values
    times = got.times(np.arange(len(messages)))
    assert times.tolist() == [
        i for i, v in zip(kept, values, strict=True) for _ in range(len(v) if many else 1)
    ]
    if got.arrays:
        assert same(rows_of(layout, got.arrays), rows)
    if many:
        lists = walked(layout, messages, explode=False)
        for f, array in zip(layout.record.visible(), lists.arrays, strict=True):
            assert same(plain(array), [[record[f.name] for record in value] for value in values])


@settings(max_examples=examples(300))
@given(st.data())
def test_sound_messages(data):
    layout = data.draw(layouts())
    judge(layout, data.draw(st.lists(payloads(layout.root), max_size=5)))


@settings(max_examples=examples(300))
@given(st.data())
def test_shares_of_threads_equal_one_share(data):
    layout = data.draw(layouts())
    sound = payloads(layout.root)
    messages = data.draw(st.lists(sound | st.binary(max_size=30), max_size=12))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=3)))
    edges = [0, *cuts, len(messages)]
    cut = [slice(lo_, hi) for lo_, hi in itertools.pairwise(edges)]
    with mock.patch.object(walking, "shares", lambda n, least: cut if n == len(messages) else [slice(0, n)]):
        judge(layout, messages)


@settings(max_examples=examples(300))
@given(st.data())
def test_damaged_messages_among_sound_ones(data):
    layout = data.draw(layouts())
    sound = payloads(layout.root)
    cut = st.tuples(sound, st.integers(0, 40)).map(lambda pair: pair[0][: -pair[1] or None])
    longer = st.tuples(sound, st.binary(max_size=20)).map(b"".join)
    judge(layout, data.draw(st.lists(sound | cut | longer | st.binary(max_size=60), max_size=6)))


@given(st.data())
def test_a_projection_equals_the_part_of_the_whole(data):
    layout = data.draw(layouts().filter(lambda found: found.paths()))
    messages = data.draw(st.lists(payloads(layout.root) | st.binary(max_size=40), max_size=4))
    paths = data.draw(st.lists(st.sampled_from(layout.paths()), min_size=1, max_size=3, unique=True))
    whole, part = walked(layout, messages), walked(layout, messages, paths)
    assert part.bad == whole.bad
    top = dict(zip((f.name for f in layout.record.visible()), map(plain, whole.arrays), strict=True))
    for path, array in zip(paths, part.arrays, strict=True):
        first, *rest = path.split(".")
        assert same(plain(array), [reach(value, rest) for value in top[first]])


def reach(value, names):
    if not names:
        return value
    return (
        [reach(item, names) for item in value]
        if isinstance(value, list)
        else reach(value[names[0]], names[1:])
    )


HEADER = nodes.Struct(
    (
        nodes.Field("seq", nodes.Scalar("uint32")),
        nodes.Field("stamp", nodes.Time()),
        nodes.Field("frame_id", nodes.String()),
    )
)
F64S = nodes.Sequence(nodes.Scalar("float64"))
JOINTS = Layout(
    nodes.Struct(
        (
            nodes.Field("header", HEADER),
            nodes.Field("name", nodes.Sequence(nodes.String())),
            nodes.Field("position", F64S, "rad"),
            nodes.Field("velocity", F64S),
            nodes.Field("effort", F64S),
        )
    )
)


def text(value: str) -> bytes:
    return len(value.encode()).to_bytes(4, "little") + value.encode()


def joints(seq: int, names: list[str]) -> bytes:
    numbers = np.arange(len(names), dtype="<f8").tobytes()
    head = np.array([seq, 5, 7], "<u4").tobytes() + text("base")
    n = len(names).to_bytes(4, "little")
    return head + n + b"".join(map(text, names)) + (n + numbers) * 2 + bytes(4)


def test_joint_states():
    messages = [joints(i, [f"joint_{k}" for k in range(i)]) for i in range(4)]
    got = walked(JOINTS, messages)
    assert got.arrays[1].to_pylist()[2] == ["joint_0", "joint_1"]
    assert got.arrays[2].to_pylist()[3] == [0.0, 1.0, 2.0]
    assert got.arrays[0].field("stamp")[0].value == 5_000_000_007
    assert walked(JOINTS, messages, ["header.stamp", "name[1]"]).arrays[1].to_pylist() == [
        None,
        None,
        "joint_1",
        "joint_1",
    ]
    judge(JOINTS, messages)


def test_every_truncation_of_a_message():
    message = joints(1, ["a", "b" * 30, "é"])
    judge(JOINTS, [message[:n] for n in range(len(message))])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (nodes.Scalar("uint16"), b"ab"),
        (nodes.String(1), b"\3abc"),
        (nodes.Bytes(2), b"\3\0abc"),
        (nodes.Sequence(nodes.Scalar("int16")), b"\2\0\0\0abcd"),
        (nodes.Sequence(nodes.String()), b"\2\0\0\0" + text("abc") + text("defgh")),
        (nodes.Sequence(nodes.Bytes(1), 1), b"\2\2ab\4cdef"),
        (nodes.FixedArray(nodes.String(), 2), text("abc") + text("defgh")),
        (nodes.Sequence(HEADER, 1), b"\2" + (bytes(12) + text("abc")) * 2),
        (
            nodes.Sequence(
                nodes.Struct((nodes.Field("a", nodes.Scalar("int8")), nodes.Field("b", nodes.Time())))
            ),
            b"\2\0\0\0" + bytes(18),
        ),
    ],
)
def test_every_truncation_of_a_last_member(node, message):
    layout = Layout(nodes.Struct((nodes.Field("first", nodes.Scalar("uint8")), nodes.Field("last", node))))
    whole = b"\0" + message
    cuts = [whole[:n] for n in range(len(whole) + 1)]
    judge(layout, cuts)
    for cut in cuts:
        # Alone, so that the cut is also the end of all readable memory.
        judge(layout, [cut])
    judge(layout, [cut + b"\0" for cut in cuts])
    hidden = walked(layout, cuts, ["first"])
    assert hidden.kept.tolist() == [len(whole)]


@pytest.mark.parametrize("at", [12, 20, 24])
def test_absurd_counts_take_no_memory(at):
    message = bytearray(joints(1, ["a"]))
    message[at : at + 4] = b"\xff\xff\xff\xff"
    judge(JOINTS, [bytes(message), joints(1, ["b"])])


def test_nested_absurd_counts_take_no_memory():
    node: nodes.Node = nodes.Scalar("uint8")
    for _ in range(20):
        node = nodes.Sequence(nodes.Struct((nodes.Field("a", node),)))
    layout = Layout(
        nodes.Struct((nodes.Field("x", node), nodes.Field("y", nodes.FixedArray(nodes.String(), 10**8))))
    )
    judge(layout, [b"\xff" * 200, bytes(4), b"\1\0\0\0" * 20])


def test_rows_outside_the_source_are_short():
    source = np.zeros(8, np.uint8)
    layout = Layout(nodes.Struct((nodes.Field("x", nodes.Scalar("uint32")),)))
    start = np.array([-4, 0, 6, 4, 8, 2**62, 5], np.int64)
    stop = np.array([0, 4, 10, 8, 12, 2**62 + 4, 2], np.int64)
    got = decode_variable(layout, source, start, stop)
    assert got.kept.tolist() == [1, 3]
    assert got.arrays[0].to_pylist() == [0, 0]


def test_invalid_text_is_replaced_in_its_column_only():
    layout = Layout(nodes.Struct((nodes.Field("a", nodes.String(1)), nodes.Field("b", nodes.String(1)))))
    # Valid as a whole, but the first value ends in the middle of a character.
    got = walked(layout, [b"\2a\xc3\1b", b"\1\xa9\2" + "é".encode()])
    assert got.arrays[0].to_pylist() == ["a�", "�"]
    assert got.arrays[1].to_pylist() == ["b", "é"]


def test_more_bytes_than_32_bit_offsets_make_several_batches(monkeypatch):
    monkeypatch.setattr("logreel.layout.program.MAX_SIZE", 100)
    monkeypatch.setattr("logreel.layout.arrow.MAX_SIZE", 100)
    layout = Layout(nodes.Struct((nodes.Field("a", nodes.Bytes()),)))
    messages = [n.to_bytes(4, "little") + bytes([n]) * n for n in (40, 50, 120, 5, 96, 60)]
    got = walked(layout, messages)
    assert isinstance(got.arrays[0], pa.ChunkedArray)
    assert got.arrays[0].to_pylist() == [m[4:] for m in messages if len(m) <= 100]
    assert got.bad == [(2, "the message is larger than 2 GiB")]


def test_large_arrays_of_structs_are_looped_over():
    item = nodes.Struct((nodes.Field("a", nodes.Scalar("uint8")), nodes.Field("b", nodes.Scalar("uint16"))))
    nested = nodes.Struct(
        (nodes.Field("many", nodes.FixedArray(item, 500)), nodes.Field("s", nodes.String(1)))
    )
    layout = Layout(
        nodes.Struct(
            (nodes.Field("x", nodes.FixedArray(nested, 2)), nodes.Field("y", nodes.Sequence(nested)))
        )
    )
    body = bytes(range(250)) * 6 + b"\1z"
    judge(layout, [body * 2 + b"\3\0\0\0" + body * 3, body * 2 + bytes(4), body])


def test_adjacent_turns_keep_runs_together():
    inner = nodes.Struct(
        (
            nodes.Field("a", nodes.Scalar("uint8")),
            nodes.Field("b", nodes.FixedArray(nodes.Scalar("int16"), 3)),
        )
    )
    item = nodes.Struct((nodes.Field("x", nodes.FixedArray(inner, 3)), nodes.Field("t", nodes.Time())))
    judge(Layout(nodes.Sequence(item, 2)), [b"\4\0" + bytes(range(29 * 4)), b"\0\0", b"\1\0" + bytes(29)])


@pytest.mark.parametrize("words", range(1, 10))
@pytest.mark.parametrize("around", [(), ("uint8",), ("uint16", "float64")], ids=len)
def test_many_turns_of_neighbouring_words(words, around):
    """Four words and more of four turns and more are turned four at a time, and no byte next to them is touched."""
    kinds = [*around, *itertools.islice(itertools.cycle(["uint32", "float32", "int32"]), words), *around]
    record = nodes.Struct(tuple(nodes.Field(f"f{i}", nodes.Scalar(kind)) for i, kind in enumerate(kinds)))
    size = Layout(record).size
    some = np.random.default_rng(words).integers(0, 127, 20 * size, np.uint8).tobytes()
    messages = [turns.to_bytes(2, "little") + some[: turns * size] for turns in (*range(10), 3, 17, 4)]
    judge(Layout(nodes.Sequence(record, 2)), messages)


def test_tables_of_other_shapes_are_refused():
    program = compile_layout(JOINTS)
    one = np.zeros(1, np.int64)
    source, counts = np.zeros(1, np.uint8), np.zeros(len(program.columns), np.int64)
    with pytest.raises(ValueError, match="differ in length"):
        kernel.count(source, one, one[:0], program.ops, counts, np.zeros(1, np.uint8))


@given(st.data())
def test_extent_is_the_end_of_the_message_by_its_content(data):
    layout = data.draw(layouts())
    message = data.draw(payloads(layout.root) | st.binary(max_size=40))
    source = guarded(b"\xee" + message)
    try:
        due = 1 + len(message) - decode_all(layout.root, message)[1]
    except Short:
        due = -1
    assert extent(measuring(layout), source, 1, len(source)) == due
