"""Validation of JSON values by the part of JSON Schema 2020-12 that logreel writes; other keywords are an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
KNOWN = {
    "$schema", "title", "description", "type", "enum", "anyOf", "items", "prefixItems", "properties", "required",
    "additionalProperties",
}  # fmt: skip


def faults(value: Any, schema: Any, place: str = "$") -> Iterator[str]:
    """Yield what is wrong with *value*, a sentence each."""
    if schema is False:
        yield f"{place}: should not be there"
    if isinstance(schema, bool):
        return
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "anyOf" in schema:
        several = [list(faults(value, branch, place)) for branch in schema["anyOf"]]
        if all(several):
            yield from min(several, key=len)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r:.80} is none of {schema['enum']}"
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        types = tuple(one for name in names for one in TYPES[name])
        # In Python, but not in JSON, a truth value is a number.
        if not isinstance(value, types) or (isinstance(value, bool) and "boolean" not in names):
            yield f"{place}: {value!r:.80} is no {' or '.join(names)}"
            return
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        for n, item in enumerate(value):
            yield from faults(
                item, first[n] if n < len(first) else schema.get("items", True), f"{place}[{n}]"
            )
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place}: lacks {name!r}"
        for name, item in value.items():
            inner = properties.get(name, schema.get("additionalProperties", True))
            yield from faults(item, inner, f"{place}.{name}")
