"""Verbs that draw logs, or offer them to others: plot, report, view, serve and demo."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.log.log import Log
    from logreel.ops.selection import Selection
    from logreel.outputs.page.plot import Panel, Plot


#: Port of the viewer: browsers keep layouts for an address with its port.
VIEWER = 18350
#: A short flight, which tools/demo_log.py makes.
BUNDLED = Path(__file__).with_name("flight.ulg.xz")
#: ``--force`` of verbs whose help calls their output OUT.
_force = click.option("--force", is_flag=True, help="Replace an existing OUT.")


@verb(
    examples={
        "logreel plot flight.ulg battery_status.voltage_v": "a chart in the terminal",
        "logreel plot flight.ulg 'vehicle_attitude.q[0]' -o attitude.html": "a page with the chart",
        "logreel plot flight.ulg --layout battery.json -o pictures/": "a picture for each plot of a layout",
    },
)
@options.selection("start", "end")
@options.utc
@click.option(
    "--width", type=click.IntRange(30, 1000), metavar="N", help="Columns of the chart in a terminal."
)
@click.option("--height", type=click.IntRange(6, 1000), metavar="N", help="Lines of the chart in a terminal.")
@click.option(
    "--layout",
    metavar="FILE",
    type=options.FILE,
    help="Draw the plots of a layout file of the viewer, as far as the log has their fields.",
)
@options.output(
    click.option(
        "-o",
        "--output",
        "out",
        metavar="OUT",
        type=options.FILE,
        help="Write a picture (.png .svg .pdf) or a page that works offline (.html); of several logs a folder, OUT/, "
        "with one for each; of a layout a folder, OUT/, with one for each of its plots.",
    ),
    click.option(
        "--format", metavar="NAME", help="Kind of OUT for -o - and a folder OUT/: png svg pdf html."
    ),
    _force,
)
@inputs.logs_and_words(
    "FILE… TOPIC.FIELD…", options.FILE_OR_FIELD, "segment", "ros_axes", "decrypt", "definitions"
)
@options.as_json
def plot(
    logs: inputs.Logs,
    words: tuple[str, ...],
    selection: Selection,
    utc: bool,
    width: int | None,
    height: int | None,
    layout: str | None,
    output: options.LogToWrite,
    as_json: bool,
) -> int:
    """Draw fields over time: in the terminal, or as a picture or page with -o.

    Each TOPIC.FIELD is a panel; TOPIC:FIELD,FIELD puts several curves into one, and a TOPIC all its numbers. Arguments
    that exist as files or folders, or end like the name of a log, are logs; each has panels of its own. --json says
    what is drawn: curves with their units, times, least and greatest values.
    """
    from logreel.errors import UsageError
    from logreel.meaning.layouts import read_layout
    from logreel.outputs.page.plot import plot as make

    if not words and layout is None:
        raise UsageError("say what to plot: topic.field")
    if words and layout is not None:
        raise UsageError("--layout says which fields are plotted: leave out TOPIC.FIELD")
    out = output.out
    # A layout has a picture for each of its plots, wherever that is not one file.
    in_folder = layout is not None and out is not None and (logs.several or inputs.is_folder(out))
    if out is not None and not logs.several and not in_folder:
        inputs.check_form(output.format, out)
    suffix = f".{output.format or 'png'}" if out == inputs.STDOUT or logs.several or in_folder else ""
    chosen = None if layout is None else read_layout(layout)

    def drawing(log: Log) -> Plot:
        drawn = make(log, *words, start=selection.start, end=selection.end, utc=utc, layout=chosen)
        if not as_json:
            draw.show_notes([f"{log.name}: {sentence}" for sentence in drawn.left_out])
        return drawn

    def data(drawn: Plot) -> dict[str, Any]:
        left = {} if layout is None else {"left_out": list(drawn.left_out)}
        return {"panels": list(map(_panel_data, drawn.panels)), **left}

    def show(log: Log) -> int:
        drawn = drawing(log)
        if as_json:
            draw.echo_answer(log, logs.several, **data(drawn))
            return draw.finish(log)
        columns, _ = shutil.get_terminal_size((100, 0))
        # Names from the log are escaped in the text; other control characters are colours.
        text = drawn.text(width or columns, height or 0, color=draw.has_colors())
        sys.stdout.write(text + "\n")
        return draw.finish(log)

    def write(log: Log, path: Destination, name: str) -> int:
        drawn = drawing(log)
        if in_folder:
            name = os.path.splitext(name)[0] if logs.several else os.path.dirname(name)
            drawn.save_each(name, format=suffix, force=bool(output.options.get("force")))
        else:
            drawn.save(path, format=suffix or None, **output.options)
        if as_json:
            draw.echo_answer(log, logs.several, output=name, **data(drawn))
        elif out != inputs.STDOUT:
            count = len(drawn.panels)
            draw.say(f"wrote {count} plot{'s' * (count != 1)} to {name}" if in_folder else f"wrote {name}")
        return draw.finish(log)

    if out is None:
        return inputs.each_log(logs, show, not as_json)
    return inputs.write_each(logs, out, write, suffix, as_json)


def _panel_data(panel: Panel) -> dict[str, Any]:
    """Return what a panel shows as data for JSON."""
    import numpy as np

    curves = []
    for curve in panel.curves:
        values = curve.values[np.isfinite(curve.values)]
        least, greatest = (float(values.min()), float(values.max())) if len(values) else (None, None)
        first, last = (int(curve.times[0]), int(curve.times[-1])) if len(curve.times) else (None, None)
        about = {"topic": curve.topic, "field": curve.field, "unit": curve.unit, "count": curve.count}
        curves.append({**about, "start_ns": first, "end_ns": last, "min": least, "max": greatest})
    return {"title": panel.title, "curves": curves}


@verb(
    examples={
        "logreel report flight.ulg -o flight.html": "one page about the log, which works offline",
        "logreel report flight.ulg -S +10s -E +30s -o part.html": "the same for twenty seconds of it",
    },
)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=options.FILE,
    help="The page to write; - for stdout; of several logs a folder, OUT/, with a page for each.",
)
@click.option(
    "--layout",
    metavar="FILE",
    type=options.FILE,
    help="Show the plots of a layout file of the viewer, as far as the log has their fields.",
)
@options.selection("start", "end")
@options.utc
@_force
@inputs.logs("segment", "ros_axes", "decrypt", "definitions")
@options.as_json
def report(
    logs: inputs.Logs,
    out: str,
    layout: str | None,
    selection: Selection,
    utc: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write a page about each log: findings, track, charts, text, parameters and topics; it works offline.

    What the charts show depends on the format and on what the topics mean. --json prints the findings, too.
    """
    from logreel.meaning.layouts import read_layout
    from logreel.outputs.page.report import report as make

    chosen = None if layout is None else read_layout(layout)

    def write(log: Log, path: Destination, name: str) -> int:
        with draw.progress("report") as tick:
            page = make(log, start=selection.start, end=selection.end, utc=utc, layout=chosen, progress=tick)
        page.save(path, force=force)
        if as_json:
            told = [
                {
                    "severity": f.severity,
                    "text": f.text,
                    "source": f.source,
                    "time_ns": f.spans[0][0] if f.spans else None,
                    "spans_ns": f.spans,
                }
                for f in page.findings
            ]
            about = {"output": name, "size": len(page.html.encode()), "charts": list(page.charts)}
            left = {} if layout is None else {"left_out": list(page.left_out)}
            draw.echo_answer(log, logs.several, **about, findings=told, **left)
        elif out != inputs.STDOUT:
            size = draw.size_text(len(page.html.encode()))
            draw.say(f"wrote {name} ({size}, {len(page.charts)} charts): open it in a browser")
        if not as_json:
            draw.show_notes([f"{log.name}: {sentence}" for sentence in page.left_out])
        return draw.finish(log)

    return inputs.write_each(logs, out, write, ".html", as_json)


_paths = click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=options.FILE)


def _service(host_help: str, what: str, *more: options.Declare, usual: int | None = None) -> options.Declare:
    """Return a decorator that adds the options of a service: the verb gets them as its argument ``service``.

    host_help  help of --host
    what       word for the service
    usual      port that it has if it is free; None: any free one
    """
    return options.as_object(
        "service",
        _service_options,
        click.option("--host", metavar="NAME", default="127.0.0.1", help=host_help),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=0 if usual is None else None,
            metavar="N",
            help="Port to listen at; 0: any free port."
            + (f" By default {usual}, if it is free." if usual is not None else ""),
        ),
        click.option(
            "--token",
            envvar="LOGREEL_TOKEN",
            metavar="TEXT",
            help="Access token instead of a random one; or set LOGREEL_TOKEN.",
        ),
        click.option(
            "--allow-host",
            "allow_hosts",
            multiple=True,
            metavar="NAME",
            help=f"Accept this further host name of the {what}.",
        ),
        *more,
    )


def _service_options(**members: Any) -> dict[str, Any]:
    return {**members, "tell": draw.say}


@verb(
    examples={
        "logreel view flight.ulg": "look at a log in the browser",
        "logreel view logs --port 8080 --no-browser": "print the address of a viewer for a folder",
    },
)
@_paths
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@click.option("-f", "--follow", is_flag=True, help="Show new messages of files that are still written.")
@click.option(
    "--layout", metavar="FILE", type=options.FILE, help="Begin with a layout that was saved in the page."
)
@click.option(
    "--tiles", metavar="FILE|URL", help="Map tiles: a PMTiles file, or an address with {z}, {x} and {y}."
)
@click.option(
    "--meshes",
    metavar="DIR",
    type=options.FOLDER,
    help="Folder with the meshes (STL, Collada, OBJ) that the description of a robot in the log names, for 3D.",
)
@_service("Address to listen at; others than this machine need --allow-host.", "viewer", usual=VIEWER)
@options.opening("decrypt", "definitions")
@options.as_json
def view(
    paths: tuple[str, ...],
    no_browser: bool,
    follow: bool,
    layout: str | None,
    tiles: str | None,
    meshes: str | None,
    service: dict[str, Any],
    opening: dict[str, Any],
    as_json: bool,
) -> int:
    """Show logs in the browser: plots, map, 3D, pictures, text, all at one time.

    Several logs are shown in the same plots. No data leaves this machine. Ctrl-C stops the viewer. --json prints its
    address and opens no browser.
    """
    from logreel.meaning.layouts import read_layout
    from logreel.outputs.http.server import free_or_any
    from logreel.outputs.view import Viewer

    if service["port"] is None:
        service["port"] = free_or_any(service["host"], VIEWER)
    chosen = None if layout is None else read_layout(layout).data
    shown: dict[str, Any] = {"layout": chosen, "tiles": tiles, "meshes": meshes}
    viewer = Viewer(paths, follow=follow, **shown, **service, **opening)
    if as_json:
        draw.echo_json({"url": viewer.url, "address": viewer.address, "token": viewer.token}, line=True)
        sys.stdout.flush()
    elif no_browser or not _opened(viewer.address):
        # The address is the data that a script asks for.
        click.echo(viewer.address)
    draw.say(f"viewing at {viewer.url}; Ctrl-C stops it")
    viewer.run()
    return 0


def _opened(address: str) -> bool:
    """Open *address* in a browser; return whether there is one."""
    import webbrowser

    return webbrowser.open(address)


@verb(
    examples={
        "logreel serve logs": "offer the logs of a folder over HTTP",
        "logreel serve flight.ulg --port 8080 --log": "one log at a fixed port, with a line per request",
    },
)
@_paths
@_service(
    "Address to listen at; by default only this machine can connect.",
    "service",
    click.option(
        "--allow-origin",
        "allow_origins",
        multiple=True,
        metavar="URL",
        help="Accept requests of web pages of this origin.",
    ),
    click.option("--log", is_flag=True, help="Print a line for each request."),
)
@options.opening("decrypt", "definitions")
def serve(paths: tuple[str, ...], service: dict[str, Any], opening: dict[str, Any]) -> int:
    """Serve logs and slices of them over HTTP: files, and all logs in and below folders.

    GET /logs lists the logs, /logs/ID describes one, /logs/ID/slice?topic=…&start=…&end=…&format=… sends a slice.
    Ctrl-C stops the service.
    """
    from logreel.outputs.serve import Service

    server = Service(paths, **service, **opening)
    # A token chosen by the user is not printed.
    draw.say(f"serving at {server.url if service['token'] else server.address}")
    server.run()
    return 0


@verb(
    examples={
        "logreel demo": "a tour with a log that comes with logreel",
        "logreel demo --dir tour": "with its files in another folder",
    },
)
@click.option(
    "--dir",
    "folder",
    type=options.FOLDER,
    default="logreel-demo",
    show_default=True,
    metavar="DIR",
    help="Folder for the files of the tour.",
)
def demo(folder: str) -> int:
    """Take a guided tour with a bundled log."""
    from importlib.util import find_spec

    from logreel.cli import main

    path, topic = _write_sample(Path(folder))
    name = _command()
    out, page = (os.path.join(folder, file) for file in ("flight.mcap", "report.html"))
    steps = [
        ("What is in the log?", ["info", path]),
        ("Messages of one channel, as text.", ["cat", path, "-t", topic, "-n", "3"]),
        ("What the robot said.", ["text", path]),
        ("Parameters changed in flight.", ["params", path, "--changed"]),
        ("Faults of sensors, clocks and power.", ["health", path]),
        ("The log for Foxglove and other tools.", ["convert", path, out, "--force"]),
        ("Everything at a glance, on one page.", ["report", path, "-o", page, "--force"]),
    ]
    for title, command in steps:
        draw.echo()
        sys.stdout.write(draw.emphasis(f"# {title}") + "\n")
        draw.echo(f"$ {name} {shlex.join(command)}")
        sys.stdout.flush()
        code = main(command)
        if code:
            return code
    draw.echo()
    sys.stdout.write(draw.emphasis("# See it") + "\n")
    draw.echo(f"Open {Path(page).resolve().as_uri()} in a browser, or look around in the viewer:")
    if not all(find_spec(library) for library in ("pyarrow", "starlette", "uvicorn")):
        # Tables and the viewer are larger than all the rest.
        draw.echo(f"$ {shlex.quote(sys.executable)} -m pip install 'logreel[view]'")
    draw.echo(f"$ {name} view {shlex.quote(path)}")
    draw.echo()
    sys.stdout.write(draw.emphasis("# What to try next") + "\n")
    draw.echo(f"$ {name} stats {shlex.quote(path)} --fields")
    draw.echo(f"$ {name} cat {shlex.quote(path)} -t {topic} --utc -S +10s -E +12s")
    draw.echo(f"$ {name} --help")
    draw.echo(f'>>> import logreel; logreel.open("{path}")["{topic}"].to_numpy()')
    if name != "logreel":
        bin_folder = Path(sys.executable).parent
        draw.echo()
        sys.stdout.write(
            draw.emphasis(f"# {name} is the command; to have it as logreel, in every folder") + "\n"
        )
        draw.echo(f"$ . {shlex.quote(str(bin_folder / 'activate'))}")
    return 0


def _command() -> str:
    """Return how to call this program in this folder: by its name if on the PATH, else the launcher or full path."""
    own = Path(sys.executable).with_name("logreel")
    on_path = shutil.which("logreel")
    if not own.exists() or (on_path is not None and os.path.realpath(on_path) == os.path.realpath(own)):
        return "logreel"
    if os.access("logreel", os.X_OK) and os.path.isfile("logreel"):
        return "./logreel"
    return shlex.quote(str(own))


def _write_sample(folder: Path) -> tuple[str, str]:
    """Write the bundled log unless it exists; return its path and the channel with most messages."""
    import lzma

    from logreel.outputs.files import new_file
    from logreel.registry.open import open_log

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / BUNDLED.stem
    data = lzma.decompress(BUNDLED.read_bytes())
    if not (path.exists() and path.read_bytes() == data):
        with new_file(path) as out:
            out.write(data)
    with open_log(path) as log:
        return str(path), max(log.match(None), key=len).topic
