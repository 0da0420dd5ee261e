"""Modules of the page against values that Python computes: Arrow streams, the address, times, search."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pytest

from browser.samples import sample
from logreel.outputs.view import Viewer


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory: pytest.TempPathFactory):
    """A page of the viewer's origin, without a log: it imports modules."""
    file = sample("ulog", tmp_path_factory.mktemp("modules"))
    with Viewer([file]) as viewer:
        found = browser.new_page()
        found.goto(f"{viewer.url}static/icon.svg")
        found.viewer_token = viewer.token
        yield found
        found.close()


READ = """async (text) => {
    const { readArrow } = await import("/static/arrow.js");
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3); // Streams behind each other are not aligned.
    const { columns, metadata } = readArrow(shifted.subarray(3));
    const texts = Object.entries(columns).map(([name, one]) => [name, Array.from(one, String)]);
    return [Object.fromEntries(texts), metadata];
}"""


def test_arrow_streams_are_read_as_pyarrow_writes_them(page) -> None:
    values = np.array([0.0, -1.5, np.nan, np.inf, 1e300, 2.0**53])
    rng = np.random.default_rng(1)
    cases = [
        {"t": pa.array(values), "v": pa.array(values[::-1])},
        {
            "t": pa.array([1.0, None, 3.0]),
            "v": pa.array([None, None, 0.25]),
            "colour": pa.array([1.0, 2.0, 3.0]),
        },
        {"t": pa.array([], pa.float64()), "v": pa.array([], pa.float64())},
        {"t": pa.array(rng.normal(size=1000)), "v": pa.array(rng.normal(size=1000))},
    ]
    for columns in cases:
        table = pa.table(columns).replace_schema_metadata({"unit": "m/s²", "points": "all"})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=300)
        found, metadata = page.evaluate(READ, base64.b64encode(sink.getvalue()).decode())
        assert metadata == {"unit": "m/s²", "points": "all"}
        for name in table.column_names:
            expected = table[name].to_numpy(zero_copy_only=False).astype(float)
            np.testing.assert_array_equal(np.array(found[name], float), expected)


def test_what_is_no_arrow_stream_is_an_error(page) -> None:
    text = page.evaluate(
        """async () => {
            const { readArrow } = await import("/static/arrow.js");
            try { readArrow(new Uint8Array(64)); } catch (error) { return error.message; }
            return ""; }"""
    )
    assert "no Arrow stream" in text


def test_the_address_holds_a_state_and_survives_a_cut(page) -> None:
    state = {
        "panels": [{"kind": "plot", "series": [{"topic": "a&b=#%", "field": "x[0]"}]}],
        "window": [1, 2],
        "theme": "dark",
    }
    found, cut = page.evaluate(
        """async (state) => { const { parse, write } = await import("/static/state.js");
            const text = "#" + await write(state, ["a&b.ulg", "c,d.bag"]);
            return [await parse(text), await parse(text.slice(0, 60) + "&__proto__=1&nonsense=2")]; }""",
        state,
    )
    assert found == {**state, "files": ["a&b.ulg", "c,d.bag"]}
    assert set(cut) <= {"files"}


def test_times_are_written_without_loss(page) -> None:
    found = page.evaluate(
        """async () => { const { Time } = await import("/static/time.js"), bus = { send() {} };
            const log = { id: "0", start: "1747471340123456789", utc_shift: "0", duration: 60e9 };
            const time = new Time([log], bus), texts = [];
            for (const clock of ["start", "utc", "log"]) {
                time.setClock(clock);
                texts.push(time.text(1000000001, 1), time.parse(time.text(5e9, 1e9)));
            }
            return texts; }"""
    )
    assert found[0] == "1.000000001"
    assert found[1] == 5_000_000_000
    assert found[2] == "08:42:21.123456790"
    # The day's time has no decimals here: the beginning of the second is meant.
    assert abs(found[3] - 5_000_000_000) < 1_000_000_000
    assert found[4] == "1747471341.123456790"


def test_search_prefers_beginnings_and_whole_words(page) -> None:
    found = page.evaluate(
        """async () => { const { search } = await import("/static/fuzzy.js");
            const names = ["sensor_combined.gyro_rad", "battery_status.voltage_v", "battery_status.current_a",
                "estimator_status.vibe", "input_rc.values"];
            const best = (text) => search(text, names, (one) => one).map(({ item }) => item)[0] ?? null;
            return [best("voltage"), best("bat cur"), best("bsv"), best("GYRO"), best("zzz")]; }"""
    )
    assert found == [
        "battery_status.voltage_v",
        "battery_status.current_a",
        "battery_status.voltage_v",
        "sensor_combined.gyro_rad",
        None,
    ]


def test_series_of_one_frame_are_one_request_and_end_with_their_signal(page) -> None:
    page.goto(page.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    found = page.evaluate(
        """async (token) => {
            const { Api } = await import("/static/api.js"), api = new Api(token);
            const want = (field, signal) => api.series("0", { topic: "sensor_accel", field },
                { from: 0, to: 1e9, px: 50 }, { signal });
            const all = await Promise.all(["x", "y", "z"].map((field) => want(field)));
            const sizes = all.map(({ columns }) => columns.t.length);
            const stop = new AbortController(), given = want("x", stop.signal);
            stop.abort();
            const end = await given.then(() => "answer", (error) => error.name);
            return [sizes, end]; }""",
        page.viewer_token,
    )
    assert len({*found[0]}) == 1
    assert found[0][0] > 10
    assert found[1] == "AbortError"
    assert len([one for one in asked if "/series?" in one]) == 1
