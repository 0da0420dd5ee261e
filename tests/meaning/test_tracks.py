"""Tracks of the map have the positions of the log, read message by message."""

from __future__ import annotations

import math

import numpy as np
import pytest

import logreel
from logreel.errors import NotFoundError
from logreel.meaning.tracks import POINTS, Track, read_track, spread, thinned, track_sources, values_at
from support.samples.bddf.builder import walk
from support.samples.carla.drive import drive as carla_drive
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight


def track(log: logreel.Log, id: str, **options: object):
    (source,) = (one for one in track_sources(log) if one.id == id)
    return source, read_track(log, source, **options)


def test_geographic_track_equals_decoded_messages() -> None:
    with logreel.open(drive(12)) as log:
        _, found = track(log, "/gps/fix")
        want = [
            (m.time, *(m.decode()[n] for n in ("latitude", "longitude", "altitude"))) for m in log["/gps/fix"]
        ]
    assert found.time.tolist() == [row[0] for row in want]
    assert found.place.tolist() == [list(row[1:]) for row in want]
    assert found.total == len(want) > 5


def test_positions_of_a_flight_controller_become_east_north_up() -> None:
    with logreel.open(flight(10)) as log:
        _, found = track(log, "vehicle_local_position")
        rows = [m.decode() for m in log["vehicle_local_position"]]
    want = [[r["y"], r["x"], -r["z"]] for r in rows if r["xy_valid"]]
    assert len(want) > 50
    np.testing.assert_allclose(found.place, want)
    assert np.ptp(found.place[:, 2]) > 0.1  # it climbs


def test_tracks_of_a_bag_name_their_frames_and_moving_transforms() -> None:
    with logreel.open(drive(12)) as log:
        found = {one.id: (one.kind, one.frame) for one in track_sources(log)}
    assert found == {
        "/gps/fix": ("geo", ""),
        "/odom": ("local", "odom"),
        "/tf odom → base_footprint": ("local", "odom"),
    }


def test_actors_that_move_have_tracks_vehicles_first() -> None:
    with logreel.open(carla_drive(10).bytes()) as log:
        found = track_sources(log)
        kinds = [log.actors[int(one.id.split()[-1])].type for one in found]
        source = found[0]
        line = source.read()
        time, place = line.time, line.place
        actor = int(source.id.split()[-1])
        # The format has centimetres, and left-handed axes with y to the right.
        want = [
            (m.time, a["location"]["x"] / 100, -a["location"]["y"] / 100)
            for m in log["position"]
            for a in m.decode()["records"]
            if a["id"] == actor
        ]
    assert kinds == sorted(kinds, key=lambda kind: kind != "vehicle")
    assert "vehicle" in kinds
    assert time.tolist() == [row[0] for row in want]
    np.testing.assert_allclose(place[:, :2], [row[1:] for row in want], atol=1e-3)


def test_colour_is_the_last_value_of_the_field() -> None:
    with logreel.open(flight(10)) as log:
        _, found = track(log, "vehicle_global_position", colour=("battery_status", "voltage_v"))
        volts = [(m.time, m.decode()["voltage_v"]) for m in log["battery_status"]]
    for when, value in zip(found.time, found.colour, strict=True):
        before = [v for t, v in volts if t <= when]
        assert (math.isnan(value) and not before) or value == before[-1]


def test_colour_must_be_a_number() -> None:
    with logreel.open(drive(1)) as log, pytest.raises(NotFoundError):
        values_at(log["/rosout"], "msg", np.zeros(1, np.int64))
    with logreel.open(drive(1)) as log, pytest.raises(NotFoundError):
        values_at(log["/rosout"], "nothing", np.zeros(1, np.int64))


def test_line_is_cut_at_long_gaps() -> None:
    with logreel.open(drive(12)) as log:
        (source,) = (one for one in track_sources(log) if one.id == "/gps/fix")
        line = source.read()
        time, place = line.time, line.place
        apart = np.concatenate([time, time + 10**12]), np.concatenate([place, place])
        found = read_track(
            log, type(source)(*("",) * 2, "geo", "", 0, "", lambda start, end: Track(*apart, True))
        )
    assert np.flatnonzero(np.isnan(found.time)).tolist() == [len(time)]
    assert np.isnan(found.place[len(time)]).all()


def test_long_tracks_lose_only_points_of_the_same_place() -> None:
    angle = np.linspace(0, 40 * np.pi, 400_000)
    place = np.stack([np.cos(angle), np.sin(angle), angle * 0], axis=-1) * angle[:, None]
    rows = thinned(place, POINTS)
    assert POINTS / 10 < len(rows) <= POINTS
    assert rows[0] == 0
    assert rows[-1] == len(place) - 1
    assert (np.diff(rows) > 0).all()
    # Every point that was left out is near one that was kept.
    kept, side = place[rows], np.ptp(place[:, :2], axis=0).max()
    for row in range(0, len(place), 4001):
        near = np.linalg.norm(kept - place[row], axis=1).min()
        assert near < side / 500


def test_standing_still_keeps_first_and_last() -> None:
    place = np.zeros((POINTS * 2, 3))
    assert thinned(place, POINTS).tolist() == [0, len(place) - 1]


def test_records_of_one_message_are_spread_up_to_the_next() -> None:
    time = np.array([0, 0, 0, 0, 100, 100, 100, 100], np.int64)
    assert spread(time).tolist() == [0, 25, 50, 75, 100, 125, 150, 175]
    assert spread(time[3:5]).tolist() == [0, 100]
    assert spread(np.array([7, 7, 3, 3])).tolist() == [7, 7, 3, 3]


def test_position_of_a_robot_by_name_and_unit_is_a_track() -> None:
    with logreel.open(walk(5)) as log:
        (source,) = track_sources(log)
        line = source.read()
        time, place = line.time, line.place
        want = [r["value"] for m in log["patrol/body/position"] for r in m.decode()["records"]]
    assert place.tolist() == want
    assert (np.diff(time) > 0).all()
