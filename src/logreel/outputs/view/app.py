"""The HTTP requests of the viewer: files of the page without a token, everything about logs with it."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from starlette import routing
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

import logreel.outputs.vendor as vendor
from logreel.errors import MissingDependencyError
from logreel.outputs.http.routes import ErrorAnswers, Parameters, Route, RoutedApp, RouteTable
from logreel.outputs.view import channels, overview, series, spatial, start
from logreel.outputs.view.limits import CHARACTERS, THREADS, WAITING
from logreel.outputs.view.session import Session

#: Media types by suffix; files with others are not served.
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}
OWN = Path(__file__).parent / "static"
VENDORED = Path(vendor.__file__).parent
#: Addresses of the page, of its scripts and its style sheets, each of them in one file, and of the map of the scripts.
PAGE, SCRIPT, STYLE, SOURCE_MAP = "/", "/page.js", "/page.css", "/page.js.map"
#: Style sheets in the order in which they apply.
STYLES = ("/vendor/uplot/uPlot.min.css", "/static/style.css", "/static/parts.css", "/static/panels/space.css")
#: The module that starts the page.
MAIN = "/static/main.js"


@cache
def known_files() -> dict[str, Callable[[], bytes]]:
    """Return what reads each file that is served, by the path of its address; no other path is ever opened."""
    paths = {f"/static/{name}": path for name, path in _below(OWN)}
    paths |= {f"/vendor/{name}": path for name, path in _below(VENDORED)}
    files = {address: path.read_bytes for address, path in paths.items()}
    modules = {
        name: path for name, path in paths.items() if name.startswith("/static/") and path.suffix == ".js"
    }
    return {
        **files,
        PAGE: files["/static/index.html"],
        STYLE: lambda: b"\n".join(files[name]() for name in STYLES),
        SCRIPT: lambda: JoinedModules(modules).script.encode(),
        SOURCE_MAP: lambda: JoinedModules(modules).sources.encode(),
    }


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA and path.is_file():
            yield path.relative_to(folder).as_posix(), path


def static_file(path: str) -> Response | None:
    """Return the file at *path* of an address; None if there is none."""
    read = known_files().get(path)
    return (
        None if read is None else Response(read(), media_type=MEDIA[posixpath.splitext(path)[1] or ".html"])
    )


_IMPORT = re.compile(r'import (\{.*\}|\* as \w+) from "([./][^"]+)";')
_EXPORT = re.compile(r"export ((?:async )?(?:function|class|const) (\w+).*)")
_LATER = re.compile(r'import\("([./][^"]+)"\)')


class JoinedModules:
    """The modules of the page as one script, which a browser gets with one request.

    Each module is a function that runs when it is first imported. Its lines stay lines, so that the map of the sources
    leads to them. What is imported from elsewhere than *modules*, such as three.js, is loaded as a file.

    modules  paths by address

    script  the text
    sources  the map, as browsers take it

    Raises ValueError for an import or export that is not one line of the usual form.
    """

    def __init__(self, modules: Mapping[str, Path]) -> None:
        self._modules = modules
        lines = ["const __modules = {}, __load = (name) => (__modules[name].exports ??= __modules[name]());"]
        mappings, last = [""], (0, 0)
        for number, (address, path) in enumerate(modules.items()):
            own = path.read_text("utf-8").splitlines()
            names = [export[2] for line in own if (export := _EXPORT.fullmatch(line))]
            lines.append(f"__modules[{json.dumps(address)}] = async () => {{")
            lines += [self._line(address, line) for line in own]
            lines.append(f"return {{ {', '.join(names)} }};\n}};")
            mappings.append("")
            for line in range(len(own)):
                # Column here, module, line and column there: each but the first as difference to the one before.
                mappings.append("A" + _vlq(number - last[0]) + _vlq(line - last[1]) + "A")
                last = number, line
            mappings += ["", ""]
        lines.append(f"__load({json.dumps(MAIN)});\n//# sourceMappingURL={SOURCE_MAP}\n")
        self.script = "\n".join(lines)
        self.sources = json.dumps(
            {"version": 3, "sources": [*modules], "names": [], "mappings": ";".join(mappings)}
        )

    def _line(self, address: str, line: str) -> str:
        """Return a line of a module as it stands in the function."""
        if imported := _IMPORT.fullmatch(line):
            names, other = imported[1], self._address(address, imported[2])
            how = "__load" if other in self._modules else "import"
            names = names.removeprefix("* as ").replace(" as ", ": ")
            return f"const {names} = await {how}({json.dumps(other)});"
        if exported := _EXPORT.fullmatch(line):
            return exported[1]
        if line.startswith(("import ", "export ", "} from ")):
            raise ValueError(f"{address}: cannot be joined: {line}")
        return _LATER.sub(lambda place: f"__load({json.dumps(self._address(address, place[1]))})", line)

    @staticmethod
    def _address(importer: str, name: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(importer), name))


_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _vlq(number: int) -> str:
    """Return a number as maps of sources have it: the sign as lowest bit, five bits a character, the lowest first."""
    rest, text = abs(number) << 1 | (number < 0), ""
    while rest > 31:
        text += _BASE64[rest & 31 | 32]
        rest >>= 5
    return text + _BASE64[rest]


#: Modules with requests; each has a function ``routes``.
ROOMS = (start, channels, overview, series, spatial)


def routes() -> list[Route]:
    """Return all requests below ``/api/`` except the stream of events."""
    return [route for room in ROOMS for route in room.routes()]


def app_of(session: Session, tell: Callable[[str], None]) -> RoutedApp:
    """Return the ASGI application of a viewer; *tell* is called with a sentence about an error of the viewer itself.

    Handlers are called with the Session, the ViewLog if the path has one, and the Parameters.
    """

    def answer(route: Route, parameters: Parameters) -> ASGIApp:
        if "log" not in route.in_path:
            return route.handler(session, parameters)
        return route.handler(session, session.log(parameters.text("log")), parameters)

    errors = ErrorAnswers(
        tell,
        "there is nothing here",
        "this cannot be answered: see what the viewer says where it was started",
        {MissingDependencyError: 501},
    )
    table = RouteTable(routes(), longest=CHARACTERS, skips_empty=True)
    more = [routing.Route("/api/events", session.events), routing.Route("/{path:path}", _static)]
    return RoutedApp(table, answer, errors, more=more, threads=THREADS, waiting=WAITING)


async def _static(request: Request) -> Response:
    response = static_file(request.url.path)
    if response is None:
        raise HTTPException(404)
    return response
