"""Descriptors of messages that are common in logs of robots, for logs opened without descriptors.

docs/formats/bddf.md lists the fields. A field of an unknown message type is ``bytes``.
"""

from __future__ import annotations

from typing import Any

#: Fields of each message: name, number, kind; ``*`` after the kind: repeated.
MESSAGES = {
    "bosdyn.api.OperatorComment": "message 1 string, timestamp 2 time",
    "bosdyn.api.TextMessage": (
        "message 1 string, timestamp 2 time, source 3 string, level 4 Level, tag 5 string, filename 6 string, "
        "line_number 7 int32"
    ),
    "bosdyn.api.Event": (
        "type 1 string, description 2 string, source 3 string, id 4 string, start_time 5 time, end_time 6 time, "
        "level 7 int32, parameters 8 bytes*, log_preserve_hint 9 int32"
    ),
    "bosdyn.api.SignalTick": (
        "sequence_id 1 int64, timestamp 2 time, source 3 string, schema_id 4 uint64, encoding 5 int32, data 6 bytes"
    ),
    "bosdyn.api.SignalSchema": "vars 1 Variable*, schema_name 2 string",
    "bosdyn.api.Variable": "name 1 string, type 2 int32, is_time 3 bool",
}
LEVELS = ("UNKNOWN", "DEBUG", "INFO", "WARN", "ERROR")


def file_descriptor() -> Any:
    """Return a FileDescriptorProto of all known messages."""
    from google.protobuf import descriptor_pb2

    field = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "string": field.TYPE_STRING,
        "bytes": field.TYPE_BYTES,
        "int32": field.TYPE_INT32,
        "int64": field.TYPE_INT64,
        "uint64": field.TYPE_UINT64,
        "bool": field.TYPE_BOOL,
    }
    out = descriptor_pb2.FileDescriptorProto(
        name="logreel/known.proto", package="bosdyn.api", syntax="proto3"
    )
    out.dependency.append("google/protobuf/timestamp.proto")
    level = out.enum_type.add(name="Level")
    for number, name in enumerate(LEVELS):
        level.value.add(name=name, number=number)
    for full_name, text in MESSAGES.items():
        message = out.message_type.add(name=full_name.rpartition(".")[2])
        for one in text.split(", "):
            name, at, kind = one.split()
            label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            made = message.field.add(name=name, number=int(at), label=label)
            if kind in kinds:
                made.type = kinds[kind]
            else:
                made.type = field.TYPE_ENUM if kind == "Level" else field.TYPE_MESSAGE
                made.type_name = ".google.protobuf.Timestamp" if kind == "time" else f".bosdyn.api.{kind}"
    return out
