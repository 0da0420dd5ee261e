"""Text in CSV that a spreadsheet would run as a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click
import pyarrow as pa
import pytest

import logreel
from logreel.errors import UsageError
from logreel.log.scan import Change, Parameter
from logreel.ops.inspect.params import params_text
from logreel.outputs.tables.csv import SafeTable, guarded, write, write_safe
from support.harness.cli_runner import Run
from support.harness.commands import commands
from support.harness.serving import running
from support.samples.ulog.builder import flight

#: Text, and whether it is marked.
TEXTS = {
    "=1+1": True, "=cmd|' /C calc'!A0": True, "+1+1": True, "-1+1": True, "@SUM(A1)": True, "\tx": True, "\rx": True,
    "\n=1": True, "'=1": True, "＝1": True, "＋1": True, "－1": True, "＠x": True, "=": True, "-": True, "+": True,
    "-1e": True, "--1": True, "-1 2": True, "-1\n=2": True, "+١": True, "-inf": True, "-0x1": True,
    "": False, "a=1": False, " =1": False, "-1": False, "+1": False, "-1.5": False, "-1.5e-3": False,
    "-9007199254740993": False,
    "1-1": False, "\u00e9": False, "#=1": False,
}  # fmt: skip


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_formulas_are_marked_and_numbers_are_not(kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([*TEXTS, None], kind),
            pa.array(range(-5, len(TEXTS) - 4)),
            pa.array([-1.5] * (len(TEXTS) + 1)),
        ],
        names=["=name", "x", "-1"],
    )
    got = guarded(batch)
    assert got.schema.names == ["'=name", "x", "-1"]
    assert got.column(0).to_pylist() == [f"'{text}" if marked else text for text, marked in TEXTS.items()] + [
        None
    ]
    assert got.columns[1:] == batch.columns[1:]
    # Removing one mark restores all.
    assert [text.removeprefix("'") for text in got.column(0).to_pylist()[:-1]] == list(TEXTS)


def test_no_cell_begins_with_a_formula_in_any_way_to_write_csv(tmp_path: Path, run: Run) -> None:
    with logreel.create(tmp_path / "x.bag") as w:
        layout = logreel.Schema("my/Note", "ros1msg", "string text\nfloat64 x\nuint8[] bytes\n")
        note = w.add_channel("/note", layout)
        for n, text in enumerate(TEXTS):
            w.write(note, n * 10**9, {"text": text, "x": -1.5, "bytes": b"\xfb\xef"})
    log = tmp_path / "x.bag"
    logreel.convert(log, tmp_path / "one.csv", safe_csv=True)
    logreel.convert(log, f"{tmp_path}/all.csv/", safe_csv=True)
    logreel.convert(log, tmp_path / "long.csv", safe_csv=True, layout="long")
    assert run("convert", log, tmp_path / "verb.csv", "--safe-csv").code == 0
    assert run("sql", 'FROM "/note"', log, "-o", tmp_path / "sql.csv", "--safe-csv").code == 0
    piped = run("cat", log, "-t", "/note", "--format", "csv", "--safe-csv").out
    folder = next((tmp_path / "all.csv").rglob("*.csv")).read_bytes()
    files = [tmp_path / f"{name}.csv" for name in ("one", "long", "verb", "sql")]
    for data in (folder, *(file.read_bytes() for file in files)):
        cells = [cell for row in rows(data) for cell in row]
        assert "'=1+1" in cells
        assert not [cell for cell in cells if cell[:1] in {*"=+-@\t\r\n"} and not is_number(cell)]
    assert folder == (tmp_path / "one.csv").read_bytes() == (tmp_path / "verb.csv").read_bytes()
    assert "'=1+1" in piped
    # Without the option, text is as it is.
    logreel.convert(log, tmp_path / "plain.csv")
    assert [row[1] for row in rows((tmp_path / "plain.csv").read_bytes())[1:]] == list(TEXTS)
    for args in (
        ["convert", log, tmp_path / "x.parquet"],
        ["cat", log],
        ["cat", log, "--format", "csv", "--json"],
        ["sql", "SELECT 1", log],
    ):
        assert run(*args, "--safe-csv").code == 2
    with pytest.raises(UsageError, match="safe_csv"):
        logreel.convert(log, tmp_path / "x.parquet", safe_csv=True)


def is_marked(data: bytes | str, separator: str = ",") -> bool:
    """Return whether there is marked text in CSV, and no other that begins as a formula."""
    text = data if isinstance(data, str) else data.decode()
    cells = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]
    risky = [cell for cell in cells if cell[:1] in {*"=+-@\t\r\n"} and not is_number(cell)]
    return not risky and any(cell[:2] in ("'=", "'-", "'+", "'@") for cell in cells)


def test_parameters_as_csv_have_no_formulas(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Parameter("=name", "float", -1.5, (Change(1, -2.5),)), Parameter("x", "@text", "=1+1", ())]
    for form in ("csv", "history"):
        for separator in ",;\t":
            text = params_text(found, form, [], safe_csv=True, delimiter=separator)
            assert is_marked(text, separator)
            assert not is_marked(params_text(found, form, [], delimiter=separator), separator)
    with pytest.raises(UsageError, match="safe_csv is for the form"):
        params_text(found, "yaml", [], safe_csv=True)
    log = tmp_path / "x.ulg"
    log.write_bytes(flight())
    # ULog refuses such names; formats of other packages may not.
    monkeypatch.setattr("logreel.ops.inspect.params.params", lambda *given, **options: found)
    for form in ("csv", "history"):
        assert is_marked(run("params", log, "--format", form, "--safe-csv").out)
        assert not is_marked(run("params", log, "--format", form).out)
    for more in ([], ["--format", "yaml"], ["--json"]):
        assert run("params", log, "--safe-csv", *more).code == 2


def test_queries_of_a_fleet_and_slices_of_the_service_have_no_formulas(tmp_path: Path, run: Run) -> None:
    with logreel.create(tmp_path / "x.bag") as w:
        note = w.add_channel("/note", logreel.Schema("my/Note", "ros1msg", "string text\n"))
        w.write(note, 10**18, {"text": "=1+1"})
    with running(tmp_path / "x.bag") as client:
        assert is_marked(client.slice("x.bag", format="safe-csv").body)
        assert client.slice("x.bag", format="csv").body == b'time_ns,text\n1000000000000000000,"=1+1"\n'
    query = ("fleet", "query", 'SELECT text AS "@x" FROM note', tmp_path / "fleet")
    pytest.importorskip("duckdb", reason="needs logreel[sql]")
    assert run("fleet", "ingest", tmp_path / "x.bag", "-o", tmp_path / "fleet", "--workers", "1").code == 0
    assert is_marked(run(*query, "--format", "csv", "--safe-csv").out)
    assert not is_marked(run(*query, "--format", "csv").out)
    assert run(*query, "--safe-csv", "--json").code == 2


def test_every_command_that_writes_csv_has_the_option() -> None:
    for name, command in commands():
        options = {flag for one in command.params for flag in one.opts}
        texts = [getattr(one, "help", "") or "" for one in command.params if "--safe-csv" not in one.opts]
        texts += [" ".join(one.type.choices) for one in command.params if isinstance(one.type, click.Choice)]
        writes = any("csv" in text.lower() for text in texts)
        assert writes <= ("--safe-csv" in options), name
        assert ("--safe-csv" in options) == (name in ("cat", "convert", "params", "sql", "fleet query")), name


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_a_growing_table_has_the_same_bytes() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2], pa.duration("ns")), pa.array(["=1", "b"])], names=["time", "@x"]
    )
    whole, growing, plain = io.BytesIO(), io.BytesIO(), io.BytesIO()
    write_safe(whole, batch.schema, [batch])
    table = SafeTable(growing, batch.schema)
    table.write(batch)
    table.close()
    assert whole.getvalue() == growing.getvalue() == b'time_ns,\'@x\n1,"\'=1"\n2,"b"\n'
    write(plain, batch.schema, [batch])
    assert plain.getvalue() == b'time_ns,@x\n1,"=1"\n2,"b"\n'
