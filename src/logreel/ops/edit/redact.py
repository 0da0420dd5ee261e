"""Redaction: positions, pictures and texts that others should not see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Rest, Struct
from logreel.lenses import Image, Text, lenses
from logreel.lenses.base import columns, is_text
from logreel.log.log import Channel, Log
from logreel.ops.edit.field_edits import FieldEdit, Numbers
from logreel.ops.edit.mask_edits import add_masks, json_messages, log_texts, time_mask
from logreel.ops.edit.masks import IdentityMask, Mask
from logreel.ops.edit.meanings import (
    Cells,
    PlaceFields,
    cartesian_paths,
    code_paths,
    find_places,
    has_text,
    hidden_pairs,
    is_receiver_data,
    structs,
    text_paths,
    words,
)
from logreel.ops.edit.pictures import black, blank
from logreel.ops.edit.place_mask import (
    HiddenPlace,
    PlaceMask,
    dependent_paths,
    hidden_places,
    positions_of,
    says_pair,
    stated_positions,
    windows,
    without_numbers,
)
from logreel.ops.edit.recipe import ChannelEdits, EditPlan, editor_of, fields_layout
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import in_file_order
from logreel.schemas.jsonschema import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import WireDecoder

F64 = NDArray[np.float64]
#: What redacted text becomes.
REDACTED = b"[redacted]"
#: Names of fields with text of people or programs.
_TEXTS = {"text", "msg", "message", "comment", "description"}
#: Key of a latitude in JSON.
_KEY = re.compile(rb'"(?:[A-Za-z_]*_)?lat(?:itude)?(?:_[a-z]+)?"\s*:', re.IGNORECASE)


def add_redactions(plan: EditPlan) -> None:
    """Add the redactions of a recipe to *plan*."""
    ways = plan.recipe.redact
    if "images" in ways:
        _add_images(plan, ways["images"])
    if "text" in ways:
        _add_text(plan, ways["text"])
    if "place" in ways or "position" in ways:
        positions = Positions(plan, ways.get("place") or ways["position"], "place" in ways)
        positions.add()
    masks: list[Mask] = [positions.mask] if "place" in ways else []
    if "identity" in ways:
        masks.append(IdentityMask())
    if "time" in ways:
        masks.append(time_mask(plan.log))
    if masks:
        add_masks(plan, masks)


def _open_plans(plan: EditPlan) -> Iterator[tuple[ChannelEdits, Layout]]:
    """Yield the plans of channels that are kept, and the Layouts that name their fields."""
    for channel_edits in plan.channels.values():
        layout = fields_layout(channel_edits.channel) if not channel_edits.drop else None
        if layout is not None:
            yield channel_edits, layout


def _drop(channel_edits: ChannelEdits, what: str, why: str) -> None:
    channel_edits.drop, channel_edits.drop_kind = why, f"redact {what}"


# ------------------------------------------------------------------------------------------------- pictures


def _add_images(plan: EditPlan, way: str) -> None:
    any_channel = False
    for channel_edits, _ in _open_plans(plan):
        lens = next((lens for lens in lenses(channel_edits.channel) if isinstance(lens, Image)), None)
        if lens is None:
            continue
        any_channel = True
        if way == "drop":
            _drop(channel_edits, "images", "pictures")
        elif (codec := _unknown_codec(channel_edits.channel, lens)) is not None:
            _drop(channel_edits, "images", f"pictures that cannot be replaced by black ones: {codec}")
        else:
            channel_edits.edits.append(FieldEdit("images", (lens.data,), content=blank(lens.encoding)))
    for name, attachment in plan.log.attachments.items():
        if attachment.media_type.startswith(("image/", "video/")):
            plan.problems.append(f"the attachment {name!r} is a picture, and stays")
            any_channel = True
    if not any_channel:
        plan.notes.append("no channel has pictures")


def _unknown_codec(ch: Channel, lens: Image) -> str | None:
    """Return the name of a codec of which no black picture can be made; None if one can."""
    for picture in lens.pictures(ch):
        if picture.encoding is not None and lens.encoding:
            return None
        made = black(bytes(picture.data), None)
        return None if made is not None else picture.format or "an unknown encoding"
    return None


# ---------------------------------------------------------------------------------------------------- texts


def _add_text(plan: EditPlan, way: str) -> None:
    any_channel = False
    for channel_edits, layout in _open_plans(plan):
        paths = _text_fields(channel_edits.channel, layout)
        if not paths:
            continue
        any_channel = True
        if way == "drop":
            _drop(channel_edits, "text", "text")
        else:
            channel_edits.edits += [FieldEdit("text", (path,), content=_redacted) for path in paths]
    if not any_channel:
        plan.notes.append("no channel has text")


def _redacted(text: bytes, message: Callable[[], Any]) -> bytes:
    return REDACTED if text else text


def _text_fields(ch: Channel, layout: Layout) -> list[str]:
    """Return the fields of *ch* with free text: lines of logs, comments, messages that are only a text."""
    lens = next((lens for lens in lenses(ch) if isinstance(lens, Text)), None)
    texts = [lens.text] if lens is not None else []
    nodes = next((nodes for _, nodes in structs(layout)), {})
    alone, single = len(nodes) == 1, isinstance(layout.root, Struct)
    for name, node in nodes.items():
        free = single and (is_text(node) or node == Rest(text=True))
        if free and (name in _TEXTS or alone) and name not in texts:
            texts.append(name)
    return texts


# ------------------------------------------------------------------------------------------------ positions


@dataclass(slots=True)
class _Origin:
    """Where positions move from and to: degrees and metres."""

    latitude: float
    longitude: float
    altitude: float
    to: tuple[float, float, float]

    def moved(self, lat: F64, lon: F64) -> tuple[F64, F64]:
        """Return moved positions; distances in metres around the origin stay."""
        stretch = np.cos(np.radians(self.latitude)) / np.cos(np.radians(self.to[0]))
        east = (lon - self.longitude + 180) % 360 - 180
        new = np.clip(lat - self.latitude + self.to[0], -90, 90)
        return new, (east * stretch + self.to[1] + 180) % 360 - 180


@dataclass(slots=True)
class Positions:
    """Redaction of positions in one log; *wide*: of all that says a place."""

    plan: EditPlan
    way: str
    wide: bool = False
    cells: Cells = field(default_factory=Cells)
    places: dict[int, list[PlaceFields]] = field(default_factory=dict)
    origin: _Origin | None = None
    mask: PlaceMask = field(init=False)
    kind: str = field(init=False)

    def __post_init__(self) -> None:
        self.mask = PlaceMask(self.cells)
        self.kind = "place" if self.wide else "position"

    def add(self) -> None:
        """Find everything that says a position, and add its changes."""
        self._find()
        plan = self.plan
        if self.wide:
            self._find_stated()
        named = channels_named_after_places(plan.log)
        for channel_edits, layout in list(_open_plans(plan)):
            ch = channel_edits.channel
            if is_receiver_data(ch, layout) and len(ch):
                _drop(channel_edits, self.kind, "raw data of a receiver")
                continue
            places = self.places.get(ch.number, [])
            known = {path for p in places for path in (p.latitude, p.longitude, *p.altitudes)}
            if ch.topic in named:
                _drop(channel_edits, self.kind, "samples of a position")
                continue
            if (why := unsearchable(ch, layout)) is not None:
                if self.wide:
                    continue
                self._add_unsearchable(channel_edits, why)
                continue
            cartesian, codes = cartesian_paths(layout), code_paths(layout)
            known |= {*cartesian}
            others = hidden_places(ch, self.mask.rules(), known) if self.wide else []
            known |= {path for other in others for path in other.paths}
            hidden = hidden_pairs(ch, layout, self.cells, known) if self.cells.numbers else []
            if self.way == "drop" and (places or cartesian or codes or hidden or others):
                _drop(channel_edits, self.kind, "positions")
                continue
            channel_edits.edits += [self._edit(place) for place in places]
            channel_edits.edits += [
                FieldEdit(self.kind, (p,), numbers=_unknown, forbids=_is_known) for p in cartesian
            ]
            channel_edits.edits += [FieldEdit(self.kind, (p,), clears=True) for p in codes]
            channel_edits.edits += [
                FieldEdit(self.kind, (p,), clears=True) for place in places for p in place.geoid
            ]
            channel_edits.edits += [
                self._edit(PlaceFields(p.latitude, p.longitude, degree=p.degree), only_here=True)
                for p in hidden
            ]
            channel_edits.edits += [self._hidden_edit(other) for other in others]
            if self.wide:
                channel_edits.edits += [
                    FieldEdit(self.kind, (p,), numbers=_zero, why="depends on the place")
                    for p in dependent_paths(layout)
                ]
            self._drop_if_fixed(channel_edits)
        if self.wide:
            return
        self._add_texts()
        self._find_other()
        changed = any(
            channel_edits.drop_kind == f"redact {self.kind}"
            or any(edit.kind == self.kind for edit in channel_edits.edits)
            for channel_edits in plan.channels.values()
        )
        if not changed and not self.cells.numbers:
            plan.notes.append("no field with a position was found")

    def _find_stated(self) -> None:
        """Find positions in texts and values; the first one is the origin if no field has any."""
        plan, mask = self.plan, self.mask
        for ch, text in log_texts(plan.log):
            for latitude, longitude in stated_positions(text) if ch is None or not _is_picture(ch) else ():
                mask.add(latitude, longitude)
        for name, value in plan.log.metadata.items():
            mask.learn_entries(name, value)
        for channel_edits, layout in _open_plans(plan):
            ch = channel_edits.channel
            for place in self.places.get(ch.number, []) if len(ch) else ():
                try:
                    values = columns(ch, [place.latitude, place.longitude]).values
                except (LogError, ValueError):
                    continue
                lat, lon = self._degrees(
                    place, *(np.asarray(values[p], np.float64) for p in (place.latitude, place.longitude))
                )
                good = np.flatnonzero(_valid(lat, lon))
                for row in good[:: max(1, len(good) // 8)].tolist():
                    mask.add(float(lat[row]), float(lon[row]))
            if isinstance(ch.decoder, JsonDecoder) or unsearchable(ch, layout) is not None:
                for message in json_messages(ch):
                    mask.learn_entries("", message)
            # Numbers that can only be on the surface of the earth say a place by themselves.
            for other in hidden_places(ch, [r for r in mask.rules() if r.width == 3], set()):
                for stated in positions_of(ch, other):
                    mask.add(*stated)
        if self.origin is None and mask.points:
            self.origin = _Origin(*mask.points[0], 0.0, plan.recipe.origin)
        if self.way == "move" and self.origin is not None:
            mask.move = self.origin.moved
            mask.repeats = not self.cells.contain(
                *(np.array([number]) for number in self.origin.to[:2])
            ).any()

    def _hidden_edit(self, other: HiddenPlace) -> FieldEdit:
        """Return the edit of numbers that are places of the log."""
        rule, move = other.rule, self.mask.move
        array = len(other.paths) == 1

        def change(values: list[Numbers], time: I64) -> list[Numbers]:
            plain = [value.astype(np.float64) for value in values]
            if array:
                plain = windows(plain[0], rule.width) if len(plain[0]) >= rule.width else []
            if not plain:
                return values
            with np.errstate(invalid="ignore", over="ignore"):
                rows = rule.hits(plain)
            new = None if move is None or rule.moved is None else rule.moved([p[rows] for p in plain], move)
            made = [values[0].copy()] * rule.width if array else [value.copy() for value in values]
            at = np.flatnonzero(rows)
            for n, column in enumerate(made):
                gone = _without(column[at], np.ones(len(at), bool))
                column[at + n * array] = (
                    gone if new is None else _stored(column[at], new[n], np.ones(len(at), bool))
                )
            return made[:1] if array else made

        def forbids(values: list[Numbers]) -> NDArray[np.bool_]:
            plain = [value.astype(np.float64) for value in values]
            if array:
                plain = windows(plain[0], rule.width) if len(plain[0]) >= rule.width else []
            to = self.plan.recipe.origin
            if not plain or self.cells.contain(*(np.array([number]) for number in to[:2])).any():
                return np.zeros(1, bool)
            return rule.hits(plain)

        return FieldEdit(self.kind, other.paths, numbers=change, forbids=forbids, why=rule.name)

    def _drop_if_fixed(self, channel_edits: ChannelEdits) -> None:
        """Leave a channel out if its positions cannot be changed."""
        if any(edit.kind == self.kind for edit in channel_edits.edits):
            try:
                editor_of(channel_edits.channel, channel_edits.edits)
            except UsageError:
                _drop(channel_edits, self.kind, "positions in messages that cannot be changed")

    def _add_unsearchable(self, channel_edits: ChannelEdits, why: str) -> None:
        """Leave out a channel without known fields if its bytes name positions; else note that it was not searched."""
        ch, hit = channel_edits.channel, False
        for batch in in_file_order(Part(self.plan.log, {ch.number: slice(0, len(ch))})) if len(ch) else ():
            text = batch.payloads.joined().tobytes()
            hit = hit or bool(_KEY.search(text)) or self._says_place(text)
        if hit:
            _drop(channel_edits, self.kind, f"positions in {why}")
        elif len(ch):
            self.plan.notes.append(f"{ch.topic!r} was not searched for positions: {why}")

    def _find(self) -> None:
        """Find the fields of positions, and the places of the log."""
        best = 0
        for channel_edits, layout in _open_plans(self.plan):
            ch = channel_edits.channel
            positions = list(find_places(layout))
            if not positions:
                continue
            self.places[ch.number] = positions
            for place in positions if len(ch) else ():
                try:
                    values = columns(ch, [place.latitude, place.longitude, *place.altitudes]).values
                except (LogError, ValueError):
                    continue
                raw = [np.asarray(values[path], np.float64) for path in (place.latitude, place.longitude)]
                lat, lon = self._degrees(place, *raw)
                good = _valid(lat, lon)
                if not good.any():
                    continue
                self.cells.add(lat[good], lon[good])
                if np.count_nonzero(good) > best:
                    best = int(np.count_nonzero(good))
                    first = int(np.argmax(good))
                    heights = [
                        float(np.asarray(values[path], np.float64)[good][0] * metre)
                        for path, metre in zip(place.altitudes, place.metre, strict=True)
                    ]
                    height = next((h for h in heights if np.isfinite(h)), 0.0)
                    to = self.plan.recipe.origin
                    self.origin = _Origin(float(lat[first]), float(lon[first]), height, to)

    def _degrees(self, place: PlaceFields, lat: F64, lon: F64) -> tuple[F64, F64]:
        lat, lon = lat * place.degree, lon * place.degree
        if place.minutes and (np.abs(lat) > 90).any():
            return _from_minutes(lat), _from_minutes(lon)
        return lat, lon

    def _edit(self, place: PlaceFields, only_here: bool = False) -> FieldEdit:
        """Return the edit of a position; *only_here*: only of values that are positions of the log."""
        paths = (place.latitude, place.longitude, *place.altitudes)
        cells, origin, move = self.cells, self.origin, self.way == "move"

        def change(values: list[Numbers], time: I64) -> list[Numbers]:
            angles = [value.astype(np.float64) for value in values[:2]]
            in_minutes = place.minutes and bool((np.abs(angles[0] * place.degree) > 90).any())
            lat, lon = self._degrees(place, *angles)
            rows = cells.contain(lat, lon) if only_here else _known(lat, lon)
            if not move or origin is None:
                return [_without(value, rows) for value in values]
            new_lat, new_lon = origin.moved(np.where(rows, lat, 0), np.where(rows, lon, 0))
            # Outside of ±90° and ±180° there is no position to keep the shape of.
            broken = rows & ~_valid(lat, lon)
            new = [new_lat, new_lon]
            if in_minutes:
                new = [_to_minutes(column) for column in new]
            made = [
                _without(_stored(value, column / place.degree, rows), broken)
                for value, column in zip(values[:2], new, strict=True)
            ]
            return made + self._heights(values[2:], place, rows, origin)

        def forbids(values: list[Numbers]) -> NDArray[np.bool_]:
            lat, lon = self._degrees(place, *(value.astype(np.float64) for value in values[:2]))
            if not move or origin is None:
                return _known(lat, lon) if not only_here else cells.contain(lat, lon)
            target = Cells()
            target.add(np.array([origin.to[0]]), np.array([origin.to[1]]))
            if (
                target.numbers & cells.numbers
                or cells.contain(*(np.array([number]) for number in origin.to[:2])).any()
            ):
                return np.zeros(len(lat), bool)
            return cells.contain(lat, lon)

        return FieldEdit(self.kind, paths, numbers=change, forbids=forbids)

    def _heights(
        self, values: list[Numbers], place: PlaceFields, rows: NDArray[np.bool_], origin: _Origin
    ) -> list[Numbers]:
        """Return moved altitudes; those above the ellipsoid become those above sea level."""
        made: list[Numbers] = []
        main: F64 | None = None
        for value, metre in zip(values, place.metre, strict=True):
            height = value.astype(np.float64) * metre
            new = height - origin.altitude + origin.to[2]
            if main is not None:
                new = np.where(np.isfinite(height), main, height)
            main = new if main is None else main
            made.append(_stored(value, new / metre, rows & np.isfinite(height)))
        return made

    # ------------------------------------------------------------------------------- texts and other content

    def _add_texts(self) -> None:
        """Add changes of texts that contain positions."""
        suspects = {
            channel_edits.channel.number: (channel_edits, layout)
            for channel_edits, layout in _open_plans(self.plan)
            if len(channel_edits.channel) and has_text(layout)
        }
        if not suspects:
            return
        rows = {
            number: slice(0, len(channel_edits.channel)) for number, (channel_edits, _) in suspects.items()
        }
        hit: set[int] = set()
        for batch in in_file_order(Part(self.plan.log, rows)):
            for place, number in enumerate(batch.channels.tolist()):
                if number in hit:
                    continue
                rows_of_channel = np.flatnonzero(batch.queue == place)
                if len(rows_of_channel) and self._says_place(
                    batch.payloads.rows(rows_of_channel).joined().tobytes()
                ):
                    hit.add(number)
        for number in hit:
            channel_edits, layout = suspects[number]
            done = {
                path
                for edit in channel_edits.edits
                if edit.kind == "text" or edit.clears
                for path in edit.paths
            }
            paths = [path for path in text_paths(layout) if path not in done]
            channel_edits.edits += [
                FieldEdit(self.kind, (path,), content=self._without_places) for path in paths
            ]

    def _says_place(self, text: bytes) -> bool:
        return without_numbers(text, self.cells) != text

    def _without_places(self, text: bytes, message: Callable[[], Mapping[str, Any]]) -> bytes:
        return without_numbers(text, self.cells)

    def _find_other(self) -> None:
        """Find positions in metadata, which are removed where that is possible, parameters and attachments."""
        plan = self.plan
        for name, value in plan.log.metadata.items():
            if name not in plan.recipe.set and says_pair(repr(value).encode("utf-8", "replace"), self.cells):
                plan.remove_metadata.append(name)
        parameters = plan.log.parameters
        for name, parameter in parameters.items():
            its = words(name)
            value = parameter.value
            if its & {"lat", "lon", "latitude", "longitude"} and isinstance(value, float | int) and value:
                near = np.array([float(value)]) * (1e-7 if abs(value) > 1000 else 1)
                if self.cells.axis(near, int(bool(its & {"lon", "longitude"})))[0]:
                    plan.problems.append(f"the parameter {name!r} holds a position, and stays")
        for name, attachment in plan.log.attachments.items():
            if says_pair(attachment.read(), self.cells):
                plan.problems.append(f"the attachment {name!r} contains positions, and stays")


def channels_named_after_places(log: Log) -> set[str]:
    """Return the channels of plain samples whose topics are named after latitude and longitude."""
    topics = set()
    for topic, ch in log.channels.items():
        if words(re.split(r"[/.]", topic)[-1]) & {"lat", "latitude", "lon", "lng", "longitude"}:
            nodes = [f.name for f in ch.layout.record.visible()] if fields_layout(ch) is not None else []
            if nodes in (["sample", "value"], ["value"], ["data"]):
                topics.add(topic)
    return topics


def unsearchable(ch: Channel, layout: Layout) -> str | None:
    """Return why fields of a channel are not known; None if they are."""
    fields = list(layout.record.visible())
    if isinstance(ch.decoder, WireDecoder):
        return "messages without a descriptor"
    if isinstance(ch.decoder, JsonDecoder) and not ch.decoder.has_fields:
        return "JSON without a schema"
    raw = len(fields) == 1 and fields[0].node == Rest() and not any(isinstance(x, Image) for x in lenses(ch))
    return "messages without a definition" if raw else None


def _known(lat: F64, lon: F64) -> NDArray[np.bool_]:
    """Return bool[n]: whether there is a position at all, valid or not."""
    return np.asarray((np.isfinite(lat) & (lat != 0)) | (np.isfinite(lon) & (lon != 0)))


def _valid(lat: F64, lon: F64) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        inside = (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        return np.asarray(np.isfinite(lat) & np.isfinite(lon) & inside & _known(lat, lon))


def _stored(old: Numbers, new: F64, rows: NDArray[np.bool_]) -> Numbers:
    """Return *new* at *rows* in the type of *old*."""
    if old.dtype.kind in "iu":
        info = np.iinfo(old.dtype)
        new = np.clip(np.rint(np.where(rows, new, 0)), info.min, info.max)
    return np.where(rows, new.astype(old.dtype), old)


def _without(old: Numbers, rows: NDArray[np.bool_]) -> Numbers:
    """Return *old* with NaN, or 0 for integers, at *rows*."""
    return np.where(rows, np.array(np.nan if old.dtype.kind == "f" else 0, old.dtype), old)


def _zero(values: list[Numbers], time: I64) -> list[Numbers]:
    return [np.zeros_like(value) for value in values]


def _is_picture(ch: Channel) -> bool:
    return any(isinstance(lens, Image) for lens in lenses(ch))


def _unknown(values: list[Numbers], time: I64) -> list[Numbers]:
    return [_without(value, np.ones(len(value), bool)) for value in values]


def _is_known(values: list[Numbers]) -> NDArray[np.bool_]:
    return np.asarray(np.any([np.isfinite(value) & (value != 0) for value in values], axis=0))


def _from_minutes(angle: F64) -> F64:
    degrees = np.trunc(angle / 100)
    return np.asarray(degrees + (angle - 100 * degrees) / 60)


def _to_minutes(angle: F64) -> F64:
    degrees = np.trunc(angle)
    return np.asarray(degrees * 100 + (angle - degrees) * 60)
