"""CARLA recordings (``.log``, ``.rec``), written by the recorder of the driving simulator.

The registry imports this package, and what ``FORMAT`` names when it is used. ``reader.py`` follows the packets,
``scan_builder.py`` makes the Scan, ``payload_decoders.py`` knows frames and their times. ``simulator/`` answers what
CARLA's own tools answer, and is ``logreel.carla`` and the verbs ``logreel carla``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan, lazy_value

if TYPE_CHECKING:
    from logreel.io.source import Source
    from logreel.limits import FixedLimit
    from logreel.log.scan import Growing
    from logreel.registry.format import Storage


#: Greatest bytes of the name of a map: readers take its length as a signed 16-bit number.
LONGEST_NAME = 32767


def _sniff(source: Source) -> bool:
    return source.head[2:18] == b"\x0e\x00CARLA_RECORDER"


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    # A recording without a date must not get today's. A damaged length can make a name of arbitrary bytes.
    town = str(metadata.get("map", ""))
    return {
        "version": metadata.get("format_version", 1),
        "map": town if len(town.encode()) <= LONGEST_NAME else "",
        "date": metadata.get("date_unix", 0),
        "engine": metadata.get("engine", "UE4"),
        **{name: metadata[name] for name in ("wheel_bytes",) if name in metadata},
    }


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.carla import reader
    from logreel.limits import GROWING, FixedLimit

    yield FixedLimit(
        "bytes of an unfinished packet of a growing CARLA recording",
        reader.LONGEST,
        "a damaged size must not stop `follow`",
        GROWING,
    )


def _storage() -> Storage:
    from logreel.formats.carla.records import STORAGE

    return STORAGE


def _follow() -> Growing:
    from logreel.formats.carla.scan_builder import CarlaGrowing

    return CarlaGrowing()


FORMAT = Format(
    name="carla",
    title="CARLA recording",
    suffixes=(".rec", ".log"),
    versions="0.9.4 to 0.9.16, 0.10",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.carla.scan_builder:scan"),
    create=lazy("logreel.formats.carla.writer:CarlaWriter"),
    append=lazy("logreel.formats.carla.writer:append"),
    copier=lazy("logreel.formats.carla.copier:CarlaCopier"),
    like=_like,
    meaning=lazy("logreel.formats.carla.meaning:meaning"),
    share=lazy("logreel.formats.carla.scan_builder:share"),
    follow=_follow,
    identity=("map", "date_unix"),
    file_facts=("format_version", "attribute_base", "wheel_bytes"),
    api=lazy_value("logreel.formats.carla.simulator.api"),
    commands=lazy_value("logreel.formats.carla.simulator.commands:COMMANDS"),
    more_commands={"metrics": "logreel-carla-metrics"},
    charts=lazy("logreel.formats.carla.meaning:charts"),
    bands=lazy("logreel.formats.carla.meaning:bands"),
    frames=lazy("logreel.formats.carla.simulator.info:frames"),
    storage=_storage,
    limits=_limits,
    traffic=lazy("logreel.formats.carla.traffic:traffic"),
)
