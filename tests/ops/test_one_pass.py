"""Changes, conditions and conversions in one pass equal the passes one after another, and need no log between them."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import logreel
from logreel.ops.rewrite.transformed import Changes
from support.builders.contents import SAMPLES, content
from support.harness.examples import half
from support.harness.written_files import written_files
from support.samples.ulog.builder import flight

#: Of each format: a channel with a field of numbers, a rule for its type, and another channel.
CHANNELS = {
    ".bag": ("/odom", "pose.pose.position.x", "nav_msgs/Odometry", "/imu"),
    ".ulg": ("battery_status", "voltage_v", "battery_status", "sensor_accel"),
    ".mcap": ("/fix", "latitude", "", "/imu"),
    ".bddf": ("patrol/speed", "", "", "blob"),
    ".vel": ("OBDDataM", "", "", "ImageM/0"),
    ".rec": ("position", "", "", "actors"),
}
#: Names of reserved channels differ, since readers make their messages of others.
TARGETS = (".mcap", ".bag", ".ulg", "same")


def plain(path: Path) -> dict[str, Any]:
    """Return the content of a log without text, parameters and dropouts, whose times follow from other messages."""
    found = {}
    for topic, (schema, messages) in content(path, "file").items():
        if topic.lstrip("/").split("/")[0] not in (
            "~text",
            "~parameter",
            "~dropout",
            "parameter",
            "rosout",
            "dropout",
        ):
            found[topic] = schema, sorted(messages)
    return found


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, str, dict[str, Any] | None, str, str]:
    """Return suffixes of source and target, a recipe, a rule and a condition."""
    suffix = draw(st.sampled_from(sorted(CHANNELS)))
    topic, field, kind, other = CHANNELS[suffix]
    edits: list[dict[str, Any]] = [{"shift": "2s"}, {"shift": "-100ms"}, {"drop_topic": other}]
    if suffix not in (".vel", ".rec"):
        edits += [{"rename": {other: f"{other}_2"}}, {"rename": {topic: "renamed"}}]
    if suffix not in (".vel", ".rec", ".bddf"):
        edits += [{"scale": 1.5}, {"zero": f"{topic}.{field}"}]
    chosen = draw(st.lists(st.sampled_from(edits), max_size=2, unique_by=lambda edit: next(iter(edit))))
    recipe = {name: value for edit in chosen for name, value in edit.items()}
    rule = ""
    if suffix == ".ulg" and draw(st.booleans()):
        rule = f'[[rule]]\ntype = "{kind}"\n[rule.fields]\nvolts = {{ from = "{field}", type = "float64" }}\n'
    if suffix == ".bag" and draw(st.booleans()):
        rule = f'[[rule]]\ntype = "{kind}"\nrename = {{ child_frame_id = "child" }}\n'
    where = ""
    renamed = recipe.get("rename", {}).get(topic, topic)
    if field and not rule and draw(st.booleans()):
        where = f'"{renamed}"."{field}" >= 0' if "." not in field else f'"{renamed}".{field} >= 0'
    return suffix, draw(st.sampled_from(TARGETS)), recipe or None, rule, where


def one_after_another(
    folder: Path, source: Path, out: Path, recipe: dict[str, Any] | None, rules: Path | None, where: str
) -> None:
    if recipe is not None:
        logreel.edit(source, folder / f"edited{source.suffix}", **recipe)
        source = folder / f"edited{source.suffix}"
    if rules is not None:
        logreel.migrate(source, folder / f"migrated{source.suffix}", rules=rules)
        source = folder / f"migrated{source.suffix}"
    if where:
        logreel.slice(source, folder / f"part{source.suffix}", where=where)
        source = folder / f"part{source.suffix}"
    logreel.convert(source, out)


#: A rule for a type that a renamed topic of a ULog does not have any more.
RULE_OF_BATTERY = (
    '[[rule]]\ntype = "battery_status"\n[rule.fields]\nvolts = { from = "voltage_v", type = "float64" }\n'
)


@settings(max_examples=half(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(chain=chains())
@example(chain=(".ulg", ".ulg", {"rename": {"battery_status": "renamed"}}, RULE_OF_BATTERY, ""))
@example(chain=(".ulg", ".ulg", {"rename": {"sensor_accel": "other"}}, RULE_OF_BATTERY, ""))
def test_a_chain_of_changes_is_what_its_passes_make_one_after_another(chain: tuple[Any, ...]) -> None:
    suffix, target, recipe, rule, where = chain
    target = suffix if target == "same" else target
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / f"source{suffix}"
        source.write_bytes(SAMPLES[suffix]())
        rules = folder / "rules.toml" if rule else None
        if rules is not None:
            rules.write_text(rule)
        options = {"edit": recipe, "migrate": None if rules is None else {"rules": rules}}
        try:
            one_after_another(folder, source, folder / f"two{target}", recipe, rules, where)
        except logreel.LogError as error:
            with pytest.raises(type(error)):
                logreel.convert(source, folder / f"one{target}", where=where, **options)
            return
        logreel.convert(source, folder / f"one{target}", where=where, **options)
        one, two = plain(folder / f"one{target}"), plain(folder / f"two{target}")
        assert one.keys() == two.keys()
        for topic in two:
            assert one[topic] == two[topic], topic


def test_tables_have_the_changes(tmp_path: Path) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(3.0))
    recipe = {"rename": {"battery_status": "battery"}, "zero": "battery_status.current_a", "shift": "5s"}
    logreel.edit(source, tmp_path / "edited.ulg", **recipe)
    logreel.convert(tmp_path / "edited.ulg", f"{tmp_path}/two.csv/", where="battery.voltage_v > 0")
    logreel.convert(source, f"{tmp_path}/one.csv/", edit=recipe, where="battery.voltage_v > 0")
    one, two = ((tmp_path / name / "battery.csv").read_text() for name in ("one.csv", "two.csv"))
    assert one == two
    assert one.count("\n") > 10


@pytest.mark.parametrize("what", ["position", "position=remove", "text"])
def test_what_is_redacted_is_in_no_other_format(tmp_path: Path, what: str) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(3.0))
    logreel.edit(source, tmp_path / "edited.ulg", redact=what)
    logreel.convert(tmp_path / "edited.ulg", tmp_path / "two.mcap")
    logreel.convert(source, tmp_path / "one.mcap", edit={"redact": what})
    one, two = plain(tmp_path / "one.mcap"), plain(tmp_path / "two.mcap")
    assert one.keys() == two.keys()
    for topic in two:
        assert one[topic] == two[topic], topic


def test_redacted_times_are_in_no_other_format(tmp_path: Path) -> None:
    for suffix in (".ulg", ".bag"):
        source, out = tmp_path / f"a{suffix}", tmp_path / f"a{suffix}.mcap"
        source.write_bytes(SAMPLES[suffix]())
        logreel.convert(source, out, edit={"redact": "all"})
        before, after = logreel.open(source), logreel.open(out)
        assert before.start is not None
        assert after.start is not None
        day = 86400 * 10**9
        assert abs(after.start - (before.start + (before.utc_offset or 0))) > day
        assert all(
            (abs(ch.times - (before.start + (before.utc_offset or 0))) > day).all() for ch in after.values()
        )


def test_unknown_changes_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(1.0))
    with pytest.raises(logreel.UsageError, match="is no edit"):
        logreel.convert(source, tmp_path / "x.mcap", edit={"nothing": 1})
    with pytest.raises(logreel.UsageError, match="is no option of a migration"):
        logreel.convert(source, tmp_path / "x.mcap", migrate={"nothing": 1})
    assert os.listdir(tmp_path) == ["a.ulg"]


# ------------------------------------------------------------------------------------------ no other files


def others(written: list[str], out: str) -> list[str]:
    """Return what is not the file *out*, also under its unfinished name."""
    unfinished = {name for name in written if name.startswith(".logreel-") and name.endswith(".partial")}
    assert len(unfinished) <= 1
    return [name for name in written if out not in name and name not in unfinished]


def test_a_merge_of_formats_and_shifted_clocks_writes_only_its_output(tmp_path: Path) -> None:
    for suffix, make in SAMPLES.items():
        (tmp_path / f"a{suffix}").write_bytes(make())
    sources = [tmp_path / f"a{suffix}" for suffix in SAMPLES]
    with written_files() as written:
        logreel.merge(sources, tmp_path / "all.mcap", align="utc")
        assert written
        assert others(written, "all.mcap") == []
    with written_files() as written:
        logreel.merge(sources[:3], tmp_path / "shifted.mcap", align="+3s", anyway=True)
        assert others(written, "shifted.mcap") == []
    files = [tmp_path / "1.ulg", tmp_path / "2.ulg"]
    for file, seconds in zip(files, (4.0, 3.0), strict=True):
        file.write_bytes(flight(seconds))
    with written_files() as written, logreel.open(files, align="+100s", anyway=True) as log:
        logreel.convert(log, tmp_path / "parts.mcap")
        assert others(written, "parts.mcap") == []
    with written_files() as written:
        logreel.convert(files[0], tmp_path / "changed.mcap", edit={"shift": "1s"}, migrate=True)
        assert others(written, "changed.mcap") == []


def test_recordings_with_changes_write_only_their_output(tmp_path: Path) -> None:
    source, out = tmp_path / "a.rec", tmp_path / "out.mcap"
    source.write_bytes(SAMPLES[".rec"]())
    with logreel.open(source) as log:
        moved = [(line.time + 2 * 10**9, line.text) for line in log.text]
        times = log["position"].times
        logreel.split(log, tmp_path / "parts", every=(log.duration or 0) // 2 + 1)
    with written_files() as written:
        logreel.convert(source, out, edit={"shift": "2s", "drop_topic": "frames"})
        assert others(written, "out.mcap") == []
    with logreel.open(out) as log:
        offset = logreel.open(source).utc_offset or 0
        assert (log["position"].times - offset == times + 2 * 10**9).all()
        # Frames are what a recording needs, and what nothing else has to get.
        assert "frames" not in log
    with logreel.open(source) as log, ExitStack() as files:
        made = Changes.of({"shift": "2s"}, None).made_of(log, files).log
        assert [(line.time, line.text) for line in made.text] == moved
        assert (made["frames"]["elapsed"] * 10**9).round().tolist() == made["frames"].times.tolist()
    # The new recording has them again, and so tells at which times actors appear and collide.
    logreel.convert(source, tmp_path / "out.rec", edit={"shift": "2s", "drop_topic": "frames"})
    with logreel.open(tmp_path / "out.rec") as log:
        assert [(line.time, line.text) for line in log.text] == moved
        assert len(log["frames"])
    with (
        written_files() as written,
        logreel.open(sorted((tmp_path / "parts").iterdir()), align="+100s") as log,
    ):
        told = [line.text for line in log.text]
        logreel.convert(log, tmp_path / "shifted.rec")
        assert others(written, "shifted.rec") == []
    assert told
    with logreel.open(tmp_path / "shifted.rec") as log:
        assert not log.problems
        assert set(told) <= {line.text for line in log.text}


@pytest.mark.parametrize(
    "options",
    [{"align": "utc"}, {"align": "+3s", "prefixes": ["a/", "", "c/"]}, {"align": "start", "start": "+1s"}],
    ids=str,
)
def test_a_merge_of_formats_is_that_of_its_conversions(tmp_path: Path, options: dict[str, Any]) -> None:
    sources = [tmp_path / f"a{suffix}" for suffix in (".ulg", ".bag", ".bddf")]
    for source in sources:
        source.write_bytes(SAMPLES[source.suffix]())
        logreel.convert(source, source.with_suffix(f"{source.suffix}.mcap"))
    made = [source.with_suffix(f"{source.suffix}.mcap") for source in sources]
    logreel.merge(sources, tmp_path / "one.mcap", **options)
    logreel.merge(made, tmp_path / "two.mcap", **options)
    one, two = content(tmp_path / "one.mcap", "file"), content(tmp_path / "two.mcap", "file")
    assert one.keys() == two.keys()
    for topic in two:
        assert one[topic] == two[topic], topic
    first, second = logreel.open(tmp_path / "one.mcap"), logreel.open(tmp_path / "two.mcap")
    assert (first.start, first.end, first.epoch, first.utc_offset) == (
        second.start,
        second.end,
        second.epoch,
        second.utc_offset,
    )
    times = first.index.time
    assert (times[1:] >= times[:-1]).all()
    assert dict(first.parameters) == dict(second.parameters)
    assert first.attachments.keys() == second.attachments.keys()


# ---------------------------------------------------------------------------------------- several files as one

#: Of each format: edits, whether types are migrated, and a condition.
JOINED = [
    (".bag", {"rename": {"/imu": "/imu_2"}, "zero": "/odom.pose.pose.position.x"}, False, ""),
    (".bag", {"scale": 1.5}, True, '"/odom".pose.pose.position.x >= 0'),
    (".ulg", {"shift": "2s", "drop_topic": "sensor_accel"}, False, "battery_status.voltage_v > 0"),
    (".ulg", {"redact": "position"}, True, ""),
    (".mcap", {"rename": {"/fix": "/gps"}}, False, ""),
    (".bddf", {"drop_topic": "blob"}, False, ""),
    (".vel", {"shift": "1s"}, False, ""),
    (".rec", {"shift": "1s"}, False, ""),
]


@pytest.mark.parametrize(("suffix", "recipe", "migrates", "where"), JOINED, ids=str)
def test_several_files_with_changes_are_what_their_log_is_with_them(
    tmp_path: Path, suffix: str, recipe: dict[str, Any], migrates: bool, where: str
) -> None:
    source = tmp_path / f"source{suffix}"
    source.write_bytes(SAMPLES[suffix]())
    with logreel.open(source) as log:
        logreel.split(log, tmp_path / "parts", every=(log.duration or 0) // 3 + 1)
    files = sorted((tmp_path / "parts").iterdir())
    assert len(files) > 1
    options: dict[str, Any] = {"edit": recipe, "migrate": migrates or None, "where": where}
    with logreel.open(files) as log:
        logreel.convert(log, tmp_path / f"whole{suffix}")
        for target in {suffix, ".mcap", ".ndjson"}:
            one, two = tmp_path / f"one{target}", tmp_path / f"two{target}"
            logreel.convert(log, one, **options)
            logreel.convert(tmp_path / f"whole{suffix}", two, **options)
            if target == ".ndjson":
                assert one.read_bytes() == two.read_bytes()
            else:
                assert plain(one) == plain(two)
    assert not list(tmp_path.glob(".logreel-*"))


@pytest.mark.parametrize("suffix", [".ulg", ".rec"])
def test_a_log_between_hides_no_source(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"source{suffix}"
    source.write_bytes(SAMPLES[suffix]())
    with logreel.open(source) as log:
        logreel.split(log, tmp_path / "parts", every=(log.duration or 0) // 2 + 1)
    files = sorted((tmp_path / "parts").iterdir())
    before = [file.read_bytes() for file in files]
    with logreel.open(files) as log:
        for out in (files[1], tmp_path / "parts" / "link.ndjson"):
            if out not in files:
                out.symlink_to(files[1])
            with pytest.raises(logreel.UsageError):
                logreel.convert(log, out, edit={"shift": "1s"}, force=True)
    assert [file.read_bytes() for file in files] == before
