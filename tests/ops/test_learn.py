"""Contracts learned from good logs: what they say, what breaks them and when, and what a person changes in them."""

from __future__ import annotations

import functools
import struct
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import Finding
from support.builders.good_runs import VEHICLES, content, faulty, start_of
from support.harness.cli_runner import Run
from support.samples.ulog.builder import Builder

SECOND = 10**9


@functools.cache
def good(vehicle: str, seed: int) -> bytes:
    return content(VEHICLES[vehicle](seed))


@functools.cache
def learned(vehicle: str, runs: int = 5) -> logreel.LearnedContract:
    return logreel.learn_contract([good(vehicle, seed) for seed in range(runs)])


def broken(data: bytes, contract: Any) -> list[Finding]:
    """Return what breaks a contract, first onset first."""
    return [
        f
        for f in logreel.check(data, contract=contract).findings
        if f.code.startswith("contract-") and f.severity == "error"
    ]


def not_assessed(data: bytes, contract: Any) -> list[str]:
    return [
        f.text for f in logreel.check(data, contract=contract).findings if f.code == "contract-not-assessed"
    ]


# ------------------------------------------------------------------------------------------------------ vehicles


def test_other_good_runs_keep_the_contract() -> None:
    """``make bench-contracts`` does this with 45 runs of each of three vehicles."""
    contract = learned("rover").contract
    assert [broken(good("rover", seed), contract) for seed in (7,)] == [[]]


@pytest.mark.parametrize(
    ("vehicle", "fault", "size", "code"),
    [
        ("rover", "stuck sensor", 2, "value"),
        ("rover", "delay", 2, "delay"),
        ("rover", "text", 1, "text"),
        ("rover", "clock back", 1, "order"),
        ("multicopter", "parameter", 0, "parameter"),
        ("rover", "dropped topic", 2, "gap"),
        ("multicopter", "drift", 2, "value"),
        ("car", "saturation", 2, "value"),
        ("car", "mode flip", 0, "value"),
    ],
)
def test_the_first_thing_that_breaks_is_the_fault_at_its_time(
    vehicle: str, fault: str, size: int, code: str
) -> None:
    result = faulty(vehicle, 60, fault, size)
    assert result is not None
    run, at = result
    found = broken(content(run), learned(vehicle, 5 if vehicle == "rover" else 3).contract)
    assert f"contract-{code}" in {f.code for f in found}
    times = [f.time_ns for f in found]
    first = times[0]
    assert first is not None
    assert at is not None
    assert abs(first - start_of(run) - at * SECOND) < SECOND
    if fault != "clock back":
        known = [time for time in times if time is not None]
        # Those without a time come last.
        assert times == sorted(known) + [None] * (len(times) - len(known))


def test_a_clock_that_was_set_back_comes_first() -> None:
    run, _ = faulty("rover", 60, "clock back", 2) or (None, None)
    assert run is not None
    found = [f.code for f in broken(content(run), learned("rover").contract)]
    orders = found.count("contract-order")
    assert orders
    assert found[:orders] == ["contract-order"] * orders


# ------------------------------------------------------------------------------------------------------ the file


def test_each_line_says_where_it_came_from_and_the_file_is_a_contract() -> None:
    text = learned("multicopter", 4).toml
    rules = tomllib.loads(text)
    assert rules["learned"]["runs"] == 4
    assert set(rules["parameters"]) == {
        "MAV_TYPE",
        "BAT1_N_CELLS",
        "MC_ROLL_P",
        "MPC_XY_VEL_MAX",
        "SYS_AUTOSTART",
    }
    assert rules["topics"]["vehicle_status"]["values"]["nav_state"]["one_of"] == [0, 3, 5]
    gyro = rules["topics"]["sensor_combined"]["values"]["gyro_rad[0]"]
    # Where it stands it is far quieter than on the mission.
    assert gyro["modes"]["Manual"]["max_std"] < 0.2 * gyro["max_std"]
    for line in text.splitlines():
        assert not line or line.startswith(("#", "[")) or "  # learned " in line
    assert "  # learned 2; in 4 of 4 runs" in text
    assert learned("multicopter", 4).runs == ("<bytes>",) * 4


def test_learning_again_gives_the_same_file_whatever_the_order_of_the_logs() -> None:
    data = [small([x * (1 + n / 10) for x in SINE]) for n in range(3)]
    first = logreel.learn_contract(data).toml
    assert logreel.learn_contract(data).toml == first
    assert logreel.learn_contract(data[::-1]).toml == first


def test_few_runs_give_wider_bounds() -> None:
    def width(runs: int) -> float:
        data = [small([x * (1 + n % 2 / 10) for x in SINE]) for n in range(runs)]
        rules = tomllib.loads(logreel.learn_contract(data).toml)
        own = rules["topics"]["a"]["values"]["x"]
        return float(own["max"] - own["min"])

    assert width(2) > 1.3 * width(6) > 2.6


def test_one_run_gives_topics_types_and_rates_but_no_ranges() -> None:
    one = learned("rover", 1)
    rules = tomllib.loads(one.toml)
    assert set(rules["topics"]) == {
        "/imu",
        "/odom",
        "/cmd_vel",
        "/battery",
        "/mode",
        "/temperature",
        "/rosout",
    }
    assert "values" not in rules["topics"]["/imu"]
    assert {"parameters", "health", "text", "min_duration"}.isdisjoint(rules)
    assert rules["topics"]["/imu"]["type"] == "yard/Imu"
    assert 25 < rules["topics"]["/imu"]["min_rate"] < 50 < rules["topics"]["/imu"]["max_rate"]
    assert one.left_out[0].startswith("ranges of fields")
    assert "#: not learned: ranges of fields" in one.toml
    assert broken(good("rover", 3), one.contract) == []


def test_damage_of_a_good_log_is_told() -> None:
    contract = logreel.learn_contract([small(SINE), small(SINE)[:-7]])
    assert "what <bytes> has lost (truncated)" in contract.left_out


def test_no_log_at_all_is_refused() -> None:
    with pytest.raises(logreel.UsageError, match="from at least one log"):
        logreel.learn_contract([])


def test_only_the_chosen_topics_are_learned() -> None:
    some = logreel.learn_contract([good("rover", 0), good("rover", 1)], topics="/[io]*", exclude="/odom")
    assert list(tomllib.loads(some.toml)["topics"]) == ["/imu"]


# ------------------------------------------------------------------------------------------------------ update


def test_what_a_person_changed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "contract.toml"
    data = [small([x * (1 + n / 10) for x in SINE]) for n in range(3)]
    logreel.learn_contract(data[:2]).save(path)
    lines = path.read_text().splitlines()
    out, table = [], ""
    for line in lines:
        table = line.partition("]")[0] + "]" if line.startswith("[") else table
        if table == "[topics.a]" and line.startswith("max_gap"):
            out.append("# because of the slow bus")
            line = "max_gap = 1.5" + line[line.index("  # learned") :]
        elif table == "[topics.a]" and line.startswith("max_jitter"):
            line = f"# {line}"
        elif table == "[topics.a]" and line.startswith("window"):
            out.append("min_messages = 3")
        out.append(line)
    out += ['[topics."/lidar"]', "required = false", "values = { range = { min = 0.1, max = 40 } }"]
    path.write_text("\n".join(out))

    again = logreel.learn_contract(data, update=path)
    rules, first = tomllib.loads(again.toml), tomllib.loads("\n".join(lines))
    assert rules["topics"]["a"]["max_gap"] == 1.5
    assert rules["topics"]["a"]["min_messages"] == 3
    assert rules["topics"]["/lidar"] == {"required": False, "values": {"range": {"min": 0.1, "max": 40}}}
    assert "max_jitter" not in rules["topics"]["a"]
    assert "# because of the slow bus\nmax_gap = 1.5  # learned " in again.toml
    assert set(again.kept) == {
        "topics.a.max_gap", "topics.a.max_jitter", "topics.a.min_messages", "topics./lidar.required",
        "topics./lidar.values.range.min", "topics./lidar.values.range.max",
    }  # fmt: skip
    # What nobody changed is what was learned now.
    fresh = tomllib.loads(logreel.learn_contract(data).toml)
    assert rules["topics"]["a"]["values"] == fresh["topics"]["a"]["values"]
    assert rules["topics"]["a"]["values"] != first["topics"]["a"]["values"]
    # And a second update changes nothing.
    again.save(path, force=True)
    assert logreel.learn_contract(data, update=path).toml == again.toml


def test_odd_names_and_values_survive() -> None:
    out = []
    for run in range(2):
        b = Builder(start_us=1_000_000).flags()
        b.parameter("int32_t A_B", 7).parameter("float NAN_P", float("nan")).parameter(
            "float INF", float("inf")
        )
        b.format("odd:uint64_t timestamp;float x;").subscribe("odd", 0)
        for n in range(100):
            b.data(0, struct.pack("<Qf", 1_000_000 + n * 50_000, n % 7 + run))
        b.text(3, 2_000_000, 'say "no" # 12; learned 3 \\ \x7f')
        out.append(b.bytes())
    contract = logreel.learn_contract(out)
    rules = tomllib.loads(contract.toml)
    assert rules["parameters"]["A_B"] == 7
    assert 'say "no" # #; learned # \\ \x7f' in rules["text"]["known"]
    assert rules["parameters"]["INF"] == float("inf")
    assert [broken(data, contract.contract) for data in out] == [[], []]


# ------------------------------------------------------------------------------------------------------ rules


def small(
    values: Iterable[float], period_us: int = 50_000, delay_us: int = 0, mode: Iterable[int] = ()
) -> bytes:
    """Return a ULog with a topic of values, 20 a second, and a mode for each."""
    rows = list(values)
    modes = list(mode) or [0] * len(rows)
    out = Builder(start_us=1_000_000).flags().parameter("int32_t P", 3).parameter("float Q", 0.1)
    out.format("a:uint64_t timestamp;uint64_t timestamp_sample;float x;uint8_t m;uint8_t[3] rest;").subscribe(
        "a", 0
    )
    for n, (x, m) in enumerate(zip(rows, modes, strict=True)):
        now = 1_000_000 + n * period_us
        out.data(0, struct.pack("<QQfB3x", now, now - delay_us, x, m))
    out.text(4, 3_000_000, "took 12 ms").text(3, 4_000_000, "motor 3 failed")
    return out.bytes()


SINE = np.sin(np.arange(200) / 5).tolist()
STILL = SINE[:100] + [0.5] * 100
JUMP = SINE[:100] + [x + 3 for x in SINE[100:]]
FLIP = [0] * 80 + [3] * 20 + [7] * 20 + [0] * 80


@pytest.mark.parametrize(
    ("rules", "data", "second", "words"),
    [
        ({"values": {"x": {"max": 2}}}, small(JUMP), 6.05, "x goes up to 3.99"),
        ({"values": {"x": {"max_mean": 2}}}, small(JUMP), 6, "x has a mean over a second of"),
        ({"values": {"x": {"max_step": 1}}}, small(JUMP), 6, "x changes from one message to the next by up to 3"),
        ({"values": {"x": {"max_std": 0.9}}}, small(JUMP), None, None),
        ({"values": {"x": {"max_std": 0.5}}}, small(SINE), 2, "x varies within a second by up to"),
        ({"values": {"x": {"max_still": "3s"}}}, small(STILL), 6, "x stays the same for"),
        ({"values": {"x": {"max_still": 6}}}, small(STILL), None, None),
        ({"values": {"m": {"one_of": [0, 3]}}}, small(SINE, mode=FLIP), 6, "m is 7, allowed is 0 or 3"),
        ({"values": {"m": {"changes": ["0 -> 3", "3 -> 7", "7 -> 0"]}}}, small(SINE, mode=FLIP), None, None),
        ({"values": {"m": {"changes": ["0 -> 3", "7 -> 0"]}}}, small(SINE, mode=FLIP), 6, "m changes from 3 to 7"),
        ({"values": {"x": {"near": {"a.m": 1.5}}}}, small(JUMP), 6, "x differs over a second from a.m by up to 3."),
        ({"values": {"x": {"near": {"a.m": 1.5}}}}, small(SINE), None, None),
        ({"max_delay": "5ms"}, small(SINE, delay_us=9000), 1, "logged 9 ms after its stamp, at most 5 ms"),
        ({"min_delay": 0.02, "max_delay": 1}, small(SINE, delay_us=9000), 1, "at least 20 ms"),
        ({"min_rate": 19, "max_rate": 22, "window": "1s"}, small(SINE), None, None),
        ({"min_rate": 25, "window": 2}, small(SINE), 1, "20 Hz within 2.0 s, at least 25 Hz are required"),
        ({"max_rate": 15, "window": 2}, small(SINE), 1, "at most 15 Hz are allowed"),
        ({"max_jitter": "1ms"}, small(SINE), None, None),
    ],
)  # fmt: skip
def test_rules_of_a_topic_have_an_onset(
    rules: dict[str, Any], data: bytes, second: float | None, words: str | None
) -> None:
    found = broken(data, {"topics": {"a": rules}})
    if second is None or words is None:
        assert found == []
        return
    (only,) = found
    assert words in only.text
    assert only.time_ns == pytest.approx(second * SECOND, abs=0.11 * SECOND)


def test_jitter_and_order_have_an_onset() -> None:
    out = Builder(start_us=1_000_000).flags().format("a:uint64_t timestamp;float x;").subscribe("a", 0)
    random = np.random.default_rng(1)
    for n in range(200):
        late = int(random.integers(-20_000, 20_000)) if n >= 100 else 0
        out.data(0, struct.pack("<Qf", 1_000_000 + n * 50_000 + late - (3_000_000 if n > 150 else 0), 0.0))
    found = broken(out.bytes(), {"topics": {"a": {"max_jitter": 0.002, "ordered": True}}})
    assert [f.code for f in found] == ["contract-order", "contract-jitter"]
    assert "1 message has an earlier time" in found[0].text


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"parameters": {"P": 3, "Q": 0.1}}, []),
        ({"parameters": {"P": [1, 3], "Q": {"min": 0, "max": 1}}}, []),
        ({"parameters": {"P": 4}}, ["P is 3, 4 is required"]),
        ({"parameters": {"R": 4}}, ["R is missing, 4 is required"]),
        ({"parameters": {"Q": {"min": 0.5}}}, ["Q is 0.1"]),
        ({"text": {"known": {"took # ms": True, "motor # failed": True}}}, []),
        ({"text": {"level": "error", "known": {"motor # failed": True}}}, []),
        ({"text": {"known": {"motor # failed": True}}}, ["a line of level warning that is not known: took # ms"]),
        ({"text": {"known": {"took # ms": False, "motor # failed": True}}}, ["a forbidden line: took # ms"]),
    ],
)  # fmt: skip
def test_parameters_and_text(rules: dict[str, Any], told: list[str]) -> None:
    found = broken(small(SINE), rules)
    assert len(found) == len(told)
    for finding, words in zip(found, told, strict=True):
        assert finding.text.startswith(words)
        assert finding.time_ns is not None


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"topics": {"a": {"values": {"x": {"changes": ["0 > 3"]}}}}}, "has pairs such as '0 -> 3'"),
        ({"topics": {"a": {"values": {"x": {"one_of": [0.5]}}}}}, "a list of whole numbers"),
        ({"topics": {"a": {"values": {"x": {"modes": {"M": {"nan": True}}}}}}}, "no key 'nan' of 'M'"),
        ({"text": {"level": "loud"}}, "no level 'loud'"),
        ({"text": {"known": {"x": 1}}}, "true or false"),
        ({"parameters": {"P": {"mim": 1}}}, "no key 'mim' of 'P'; nearest: min"),
    ],
)
def test_wrong_rules_are_refused(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(logreel.UsageError, match=words):
        logreel.check(small(SINE), contract=rules)


def test_what_cannot_be_assessed_is_told() -> None:
    contract = {
        "learned": {"runs": 3},
        "health": {"limits": {"frozen-camera": "warn"}},
        "topics": {
            "absent": {"required": False},
            "a": {"min_rate": 1, "window": 60, "max_delay": 1, "values": {"x": {"max": 5}}},
        },
    }
    out = Builder(start_us=1_000_000).flags().format("a:uint64_t timestamp;float x;").subscribe("a", 0)
    out.format("b:uint64_t timestamp;").subscribe("b", 1)
    for n in range(100):
        out.data(0, struct.pack("<Qf", 1_000_000 + n * 50_000, n)).data(
            1, struct.pack("<Q", 1_000_000 + n * 50_000)
        )
    told = not_assessed(out.bytes(), contract)
    assert sorted(told) == [
        "absent: the log does not have this topic, which is not required",
        "its delay: its messages have no stamps",
        "its rate: it has no messages over 60.0 s",
        "the detector frozen-camera: no camera has enough pictures",
        "topics that the contract does not name: b",
    ]
    assert not_assessed(out.bytes(), {"topics": {"absent": {"required": False}}}) == []


def test_fields_that_stay_near_each_other_are_learned() -> None:
    values = tomllib.loads(learned("rover").toml)["topics"]["/cmd_vel"]["values"]
    assert 0.13 < values["v"]["near"]["/odom.v"] < 0.5
    told = not_assessed(small(SINE), {"topics": {"a": {"values": {"x": {"near": {"b.y": 1}}}}}})
    assert told == ["x beside b.y, which the log does not have"]


def test_what_is_in_one_run_only_is_not_learned() -> None:
    def rules(modes: Iterable[Iterable[int]]) -> dict[str, Any]:
        contract = logreel.learn_contract([small(SINE, mode=own) for own in modes])
        values: dict[str, Any] = tomllib.loads(contract.toml)["topics"]["a"].get("values", {}).get("m", {})
        return values

    calm = [0] * 100 + [3] * 100
    assert rules([FLIP, calm, FLIP]) == {"one_of": [0, 3, 7], "changes": ["0 -> 3", "3 -> 7", "7 -> 0"]}
    assert rules([FLIP, calm, calm]) == {}


def test_new_warnings_break_a_contract_of_many_runs_only() -> None:
    def level(runs: int) -> str:
        return str(tomllib.loads(logreel.learn_contract([small(SINE[:60])] * runs).toml)["text"]["level"])

    assert [level(2), level(10)] == ["error", "warning"]


def test_modes_that_were_not_learned_are_not_assessed() -> None:
    values = {"gyro_rad[0]": {"modes": {"Manual": {"max_std": 1}}}}
    told = not_assessed(good("multicopter", 0), {"topics": {"sensor_combined": {"values": values}}})
    assert len(told) == 1
    assert "Mission, Armed, In the air" in told[0]


# ------------------------------------------------------------------------------------------------------ command


def test_learning_on_the_command_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good").mkdir()
    for n in range(3):
        Path(f"good/{n}.ulg").write_bytes(small([x * (1 + n / 10) for x in SINE]))
    Path("bad.ulg").write_bytes(small(JUMP))
    done = run("check", "--learn", "good", "-o", "contract.toml")
    assert (done.code, done.out) == (0, "")
    assert "learned from 3 runs" in done.err
    assert 'type = "a"  # learned "a"; in 3 runs' in Path("contract.toml").read_text()
    assert "0.ulg, 1.ulg, 2.ulg" in Path("contract.toml").read_text()
    assert run("check", "good", "--contract", "contract.toml").code == 0
    done = run("check", "bad.ulg", "--contract", "contract.toml")
    assert done.code == 4
    assert "error: contract-value: a: x " in done.out
    # In place.
    text = Path("contract.toml").read_text()
    Path("contract.toml").write_text(text.replace("ordered = true", "ordered = false"))
    done = run("check", "--learn", "good/0.ulg", "good/1.ulg", "--update", "contract.toml")
    assert (done.code, done.out) == (0, "")
    assert "kept 1 line of yours" in done.err
    assert "ordered = false  # learned true" in Path("contract.toml").read_text()
    for more, words in (
        (["--json"], "--learn writes a contract"),
        (["--contract", "contract.toml"], "--learn writes a contract"),
        (["-S", "+1s"], "learned from whole logs"),
    ):
        done = run("check", "--learn", "good", *more)
        assert done.code == 2
        assert words in done.err
