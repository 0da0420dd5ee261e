"""Map tiles come from a PMTiles file or a server; the outline of the world is the one that was fetched."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import logreel.outputs.vendor
from logreel.errors import LogError, UnsupportedError, UsageError
from logreel.outputs.media.pictures import png
from logreel.outputs.view.tiles import open_tiles

VENDOR = Path(logreel.outputs.vendor.__file__).parent


def picture(z: int, x: int, y: int) -> bytes:
    return png(np.full((4, 4, 3), (z * 40, x * 40, y * 40), np.uint8))


def write(path: Path, kind: str = "PNG", attribution: str = "© <a href='x'>Maker</a>") -> Path:
    """Write all tiles of zoom levels 0 to 2."""
    writer = pytest.importorskip("pmtiles.writer")
    from pmtiles.tile import Compression, TileType, zxy_to_tileid

    with open(path, "wb") as file:
        out = writer.Writer(file)
        places = [(z, x, y) for z in range(3) for x in range(1 << z) for y in range(1 << z)]
        for number, place in sorted((zxy_to_tileid(*place), place) for place in places):
            out.write_tile(number, picture(*place))
        about = {"attribution": attribution}
        out.finalize({"tile_type": TileType[kind], "tile_compression": Compression.NONE}, about)
    return path


def test_tiles_of_a_file_are_those_that_were_written(tmp_path: Path) -> None:
    tiles = open_tiles(str(write(tmp_path / "x.pmtiles")))
    assert tiles.describe() == {"min_zoom": 0, "max_zoom": 2, "attribution": "© Maker", "kind": "raster"}
    for place in [(0, 0, 0), (1, 1, 0), (2, 3, 1), (2, 0, 3), (2, 3, 1)]:
        assert tiles.tile(*place) == (picture(*place), "image/png")
    assert tiles.tile(3, 0, 0) is None


@pytest.mark.parametrize("place", [(-1, 0, 0), (1, 2, 0), (1, 0, -1), (99, 0, 0)])
def test_impossible_places_are_refused(tmp_path: Path, place: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="no tile can have the place"):
        open_tiles(str(write(tmp_path / "x.pmtiles"))).tile(*place)


def test_vector_tiles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="vector tiles"):
        open_tiles(str(write(tmp_path / "x.pmtiles", "MVT")))


@pytest.mark.parametrize(
    "data", [b"", b"PMTiles", b"PMTiles\x03" + b"\xff" * 200, gzip.compress(b"x" * 500, mtime=0)]
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("pmtiles")
    path = tmp_path / "x.pmtiles"
    path.write_bytes(data)
    with pytest.raises(UnsupportedError):
        open_tiles(str(path))


@pytest.mark.parametrize(
    "source", ["nothing.pmtiles", "ftp://x/{z}/{x}/{y}", "http://x/tiles", "file:///etc/passwd"]
)
def test_other_sources_are_refused(source: str) -> None:
    with pytest.raises(UsageError):
        open_tiles(source)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of tiles, and of the file with range requests."""
    whole = write(tmp_path / "x.pmtiles").read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".pmtiles"):
                first, last = (int(text) for text in self.headers["Range"].removeprefix("bytes=").split("-"))
                self.answer(206, whole[first : last + 1])
            elif self.path.startswith("/large"):
                self.answer(200, bytes(5 << 20))
            elif self.path.startswith("/text"):
                self.answer(200, b"<html>")
            else:
                self.answer(200, picture(*(int(part) for part in self.path.strip("/").split("/"))))

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_tiles_of_a_server(server: str) -> None:
    assert open_tiles(server + "/{z}/{x}/{y}").tile(2, 3, 1) == (picture(2, 3, 1), "image/png")
    tiles = open_tiles(server + "/x.pmtiles")
    assert tiles.most == 2
    assert tiles.tile(2, 3, 1) == (picture(2, 3, 1), "image/png")


def test_answers_of_a_server_that_are_no_tiles_are_errors(server: str) -> None:
    with pytest.raises(LogError, match="larger"):
        open_tiles(server + "/large/{z}/{x}/{y}").tile(0, 0, 0)
    with pytest.raises(UnsupportedError, match="no PNG"):
        open_tiles(server + "/text/{z}/{x}/{y}").tile(0, 0, 0)
    with pytest.raises(LogError, match="does not answer"):
        open_tiles("http://127.0.0.1:9/{z}/{x}/{y}").tile(0, 0, 0)


def test_fetched_libraries_have_their_checksums() -> None:
    kept = json.loads((VENDOR / "vendored.json").read_text())
    for package in ("three", "world-atlas"):
        assert kept[package]["version"]
        assert kept[package]["license"]
        for name, digest in kept[package]["sha256"].items():
            assert hashlib.sha256((VENDOR / package / name).read_bytes()).hexdigest() == digest


def test_outline_of_the_world_is_small_and_whole() -> None:
    path = VENDOR / "world-atlas" / "countries-110m.json"
    world = json.loads(path.read_text())
    assert path.stat().st_size < 150_000
    assert len(world["objects"]["countries"]["geometries"]) > 170
    scale, origin = world["transform"]["scale"], world["transform"]["translate"]
    for arc in world["arcs"]:
        x, y = np.cumsum(np.array(arc), axis=0).T
        assert (np.abs(x * scale[0] + origin[0]) <= 180.001).all()
        assert (np.abs(y * scale[1] + origin[1]) <= 90.001).all()
