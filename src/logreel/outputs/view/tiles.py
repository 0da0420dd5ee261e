"""Map tiles of the user: a PMTiles file, or a server, read through this program so that the page stays local."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, build_opener

from logreel._version import __version__
from logreel.errors import LogError, MissingDependencyError, UnsupportedError, UsageError

#: Zoom levels that exist; bytes of one tile, and of a part of a directory; tiles kept; seconds to wait for a server.
MOST_ZOOM, TILE_BYTES, PART_BYTES, KEPT, PATIENCE = 22, 4 << 20, 32 << 20, 512, 15
#: Media types by the number of a tile type in PMTiles (specification 3, tile type), pictures only.
_PICTURES = {2: "image/png", 3: "image/jpeg", 4: "image/webp", 5: "image/avif"}
_MAGIC = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))
_PLACES = ("{z}", "{x}", "{y}")


class Tiles:
    """Tiles by zoom level, column and row; the row is counted from the north.

    least, most  zoom levels that exist
    attribution  what must be written on the map, as text
    """

    def __init__(
        self, get: Callable[[int, int, int], bytes | None], least: int, most: int, attribution: str
    ) -> None:
        self._get, self.least, self.most, self.attribution = get, least, most, attribution
        self._kept: OrderedDict[tuple[int, int, int], tuple[bytes, str] | None] = OrderedDict()
        self._lock = Lock()

    def describe(self) -> dict[str, Any]:
        """Return what a page must know: zoom levels, attribution and kind."""
        return {
            "min_zoom": self.least, "max_zoom": self.most, "attribution": self.attribution, "kind": "raster"
        }  # fmt: skip

    def tile(self, zoom: int, column: int, row: int) -> tuple[bytes, str] | None:
        """Return the bytes and the media type of a tile; None if there is none.

        Raises UsageError for a place that no tile can have, LogError if it cannot be read.
        """
        if not (0 <= zoom <= MOST_ZOOM and 0 <= column < 1 << zoom and 0 <= row < 1 << zoom):
            raise UsageError(f"no tile can have the place {zoom}/{column}/{row}")
        if not self.least <= zoom <= self.most:
            return None
        place = (zoom, column, row)
        with self._lock:
            if place in self._kept:
                self._kept.move_to_end(place)
                return self._kept[place]
        data = self._get(*place)
        answer = None if not data else (data, _media(data))
        with self._lock:
            self._kept[place] = answer
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return answer


def _media(data: bytes) -> str:
    for magic, media in _MAGIC:
        if data.startswith(magic):
            return media
    raise UnsupportedError("a tile is no PNG, JPEG or WebP picture")


def open_tiles(source: str) -> Tiles:
    """Return the tiles of a PMTiles file, or of a URL: of a PMTiles file, or with ``{z}``, ``{x}`` and ``{y}``.

    Raises UsageError for another *source*, UnsupportedError for tiles that are no pictures, LogError if the source
    cannot be read, MissingDependencyError without ``logreel[tiles]`` for PMTiles.
    """
    if re.match(r"https?://", source, re.IGNORECASE):
        if all(place in source for place in _PLACES):
            return Tiles(_from_server(source), 0, 19, urlsplit(source).hostname or "")
        if urlsplit(source).path.endswith(".pmtiles"):
            return _pmtiles(lambda offset, size: _fetch(source, (offset, size)), source)
        raise UsageError(
            "tiles come from a PMTiles file, or from a URL that ends with .pmtiles or has {z}, {x} and {y}: "
            + source
        )
    path = Path(source)
    if "://" in source or not path.is_file():
        raise UsageError(f"there is no file of tiles {source!r}")
    return _pmtiles(lambda offset, size: _read(path, offset, size), source)


def _read(path: Path, offset: int, size: int) -> bytes:
    if size > PART_BYTES:
        raise UnsupportedError(f"{path} announces a part of {size} bytes")
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path=str(path)) from error


def _pmtiles(get: Callable[[int, int], bytes], name: str) -> Tiles:
    try:
        from pmtiles.reader import Reader
    except ImportError as error:
        raise MissingDependencyError("pmtiles", "tiles") from error
    reader = Reader(get)
    try:
        header, about = reader.header(), reader.metadata()
    except LogError:
        raise
    except Exception as error:
        # The library raises whatever its parsing meets.
        raise UnsupportedError(f"{name!r} is no PMTiles file of version 3") from error
    tile_type = getattr(header["tile_type"], "value", header["tile_type"])
    if tile_type not in _PICTURES:
        raise UnsupportedError(
            f"{name!r} holds vector tiles; the map shows pictures (PNG, JPEG, WebP): convert them to raster tiles"
        )

    def tile(zoom: int, column: int, row: int) -> bytes | None:
        try:
            data: bytes | None = reader.get(zoom, column, row)
        except LogError:
            raise
        except Exception as error:
            raise LogError(f"the tile {zoom}/{column}/{row} cannot be read from {name!r}") from error
        return data

    note = about.get("attribution") if isinstance(about, dict) else None
    # It may be HTML, which is not needed for its text.
    text = re.sub(r"<[^<>]*>", "", note)[:200] if isinstance(note, str) else ""
    return Tiles(tile, header["min_zoom"], min(header["max_zoom"], MOST_ZOOM), text)


def _from_server(template: str) -> Callable[[int, int, int], bytes | None]:
    def tile(zoom: int, column: int, row: int) -> bytes | None:
        address = template
        for place, number in zip(_PLACES, (zoom, column, row), strict=True):
            address = address.replace(place, str(number))
        return _fetch(address)

    return tile


def _fetch(address: str, part: tuple[int, int] | None = None) -> bytes:
    """Return what a server answers, or a part of it by offset and size; raises LogError."""
    headers = {"User-Agent": f"logreel/{__version__}"}
    limit = TILE_BYTES
    if part is not None:
        headers["Range"] = f"bytes={part[0]}-{part[0] + part[1] - 1}"
        limit = min(part[1], PART_BYTES)
    try:
        with build_opener().open(Request(address, headers=headers), timeout=PATIENCE) as answer:
            if part is not None and answer.status != 206:
                raise LogError(f"the server of {address} does not send parts of files")
            data: bytes = answer.read(limit + 1)
    except (OSError, ValueError) as error:
        raise LogError(f"the tile server does not answer: {error}") from error
    if len(data) > limit and part is None:
        raise LogError(f"a tile of {address} is larger than {limit} bytes")
    return data[:limit]
