"""The table of requests: parameters are checked in one place, and the document made from it is the one of before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logreel.errors import UsageError
from logreel.outputs.http.routes import (
    FLAG,
    TEXT,
    Cancelled,
    Parameters,
    RequestParameter,
    Route,
    choice,
    number,
)
from logreel.outputs.serve.service import ROUTES, openapi
from logreel.outputs.slice_stream import kinds
from logreel.outputs.view.app import routes

#: The document as it was written by hand, for formats called FORMAT.
WRITTEN = Path(__file__).parent / "data" / "serve_openapi.json"


def resolved(value: Any, document: dict[str, Any]) -> Any:
    """Return a part of *document* with all references replaced by what they mean, in one spelling."""
    if isinstance(value, list):
        return [resolved(item, document) for item in value]
    if not isinstance(value, dict):
        return sorted(kinds()) if value == ["FORMAT"] else value
    if "$ref" in value:
        target: Any = document
        for key in value["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return resolved(target, document)
    members = {key: resolved(item, document) for key, item in value.items()}
    if members.get("enum") == ["FORMAT"]:
        members["enum"] = sorted(kinds())
    # A list of texts says that the type is text.
    if isinstance(members.get("enum"), list) and all(isinstance(item, str) for item in members["enum"]):
        members["type"] = "string"
    return members


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method): resolved(operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_the_generated_document_means_what_the_written_one_did() -> None:
    written, generated = json.loads(WRITTEN.read_text()), openapi()
    assert generated["openapi"] == written["openapi"]
    assert generated["security"] == written["security"]
    assert {**generated["info"], "version": "VERSION"} == written["info"]
    assert generated["components"]["securitySchemes"] == written["components"]["securitySchemes"]
    before, now = operations(written), operations(generated)
    assert set(now) == set(before)
    for request, operation in now.items():
        old = before[request]
        assert operation["summary"] == old["summary"]
        assert operation["parameters"] == old["parameters"], request
        assert operation["responses"] == old["responses"], request
        # The written document had the name "index" twice.
        assert operation["operationId"] == {"/index": "indexOfAll"}.get(request[0], old["operationId"])
    names = set(written["components"]["schemas"])
    assert set(generated["components"]["schemas"]) == names
    for name in names:
        schema = {"$ref": f"#/components/schemas/{name}"}
        assert resolved(schema, generated) == resolved(schema, written)
    ids = [operation["operationId"] for operation in now.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("table", [ROUTES, routes()], ids=["serve", "view"])
def test_routes_are_declared_once_and_completely(table: list[Route]) -> None:
    paths = [(route.path, route.body_bytes > 0) for route in table]
    assert len(set(paths)) == len(paths)
    for route in table:
        assert callable(route.handler)
        names = [parameter.name for parameter in route.parameters]
        assert len(set(names)) == len(names), route.path
        for parameter in route.parameters:
            assert json.loads(json.dumps(parameter.schema))["type"], (route.path, parameter.name)
            assert parameter.text or parameter.name in route.in_path, (route.path, parameter.name)


KNOWN = {
    parameter.name: parameter
    for parameter in (
        RequestParameter("names", TEXT, repeated=True),
        RequestParameter("limit", number(1, 10), default=5),
        RequestParameter("kind", choice(("a", "b"))),
        RequestParameter("anyway", FLAG),
    )
}


def test_values_have_the_declared_types_and_defaults() -> None:
    parameters = Parameters([("names", "x"), ("names", "y"), ("anyway", "1")], KNOWN)
    assert parameters.all("names") == ["x", "y"]
    assert (parameters.get("limit"), parameters.get("kind"), parameters.get("anyway")) == (5, None, True)
    assert "limit" not in parameters
    assert Parameters([("limit", "10")], KNOWN).get("limit") == 10
    with pytest.raises(UsageError, match="the parameter 'kind' is missing"):
        parameters.text("kind")


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([("limits", "1")], "no parameter 'limits'; there are: limit, kind, anyway, names"),
        ([("limit", "1"), ("limit", "1")], "the parameter 'limit' is given twice"),
        ([("limit", "11")], "the limit '11' is no number from 1 to 10"),
        ([("limit", "0x1")], "is no number"),
        ([("limit", "9" * 400)], "is no number"),
        ([("limit", "nan")], "is no number"),
        ([("kind", "c")], "no kind 'c'; there are: a, b"),
    ],
)
def test_other_values_are_refused(items: list[tuple[str, str]], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Parameters(items, KNOWN)


def test_work_for_a_client_that_has_gone_is_cancelled() -> None:
    from threading import Event

    stop = Event()
    parameters = Parameters([], KNOWN, stop)
    parameters.check()
    stop.set()
    with pytest.raises(Cancelled):
        parameters.check()
