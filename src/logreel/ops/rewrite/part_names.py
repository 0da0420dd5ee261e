"""Names of the files of a split log, by templates such as ``{stem}_{index:03}_{value}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter

from logreel.errors import UsageError

#: Keys of templates that every rule of splitting has.
KEYS = ("stem", "index", "start", "end", "utc")
#: Keys that only some rules have.
MORE = ("value", "topic", "segment")
#: Most characters of a value, and bytes of a file name without its suffix.
VALUE, NAME = 100, 180
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")
#: Separators of paths, and characters that no file system or terminal likes.
_NO_NAME = re.compile(r"[/\\:\x00-\x1f\x7f]")
_WIDTH = re.compile(r"0?\d{1,2}")


def safe(text: str, most: int = VALUE) -> str:
    """Return *text* with at most *most* characters, all safe in file names; ``_`` if none is left."""
    return _UNSAFE.sub("_", text).strip("._")[:most] or "_"


@dataclass
class PartNames:
    """Gives each part of a log a file name of its own, inside of one folder.

    template  text with keys in braces; numbers may have a width, ``{index:03}``
    suffix    suffix of the format, added unless the template ends with it
    keys      keys that have values

    Raises UsageError for a template that cannot be used.
    """

    template: str
    suffix: str
    keys: tuple[str, ...]
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.template.lower().endswith(self.suffix.lower()):
            self.template = self.template[: len(self.template) - len(self.suffix)]
        try:
            parts = list(Formatter().parse(self.template))
        except ValueError as error:
            raise UsageError(f"cannot read the name {self.template!r}: {error}") from None
        if not self.template:
            raise UsageError("a part needs a name")
        known = ", ".join(f"{{{key}}}" for key in self.keys)
        for text, key, width, conversion in parts:
            if _NO_NAME.search(text):
                raise UsageError(f"the name {self.template!r} is that of a file in the folder, not a path")
            if key is None:
                continue
            if key not in self.keys:
                why = " for this way to split" if key in MORE else ""
                raise UsageError(f"no key {{{key}}} in names{why}; there are {known}")
            if conversion or (width and not _WIDTH.fullmatch(width)):
                raise UsageError(f"cannot read {{{key}:{width}}} in a name: write a width, as {{index:03}}")

    def name(self, values: Mapping[str, object]) -> str:
        """Return the file name of the next part; *values*: of all keys, texts or whole numbers."""
        texts = {
            key: safe(str(value)) if not isinstance(value, int) else value for key, value in values.items()
        }
        wanted = "".join(
            text + ("" if key is None else _filled(texts[key], width or ""))
            for text, key, width, _ in Formatter().parse(self.template)
        )
        # A leading dot hides a file, a leading dash looks like an option.
        name = re.sub(r"^[.\-]+", "_", wanted.encode()[:NAME].decode("utf-8", "ignore"))
        found, n = name, 1
        while found.lower() in self._taken:
            n += 1
            found = f"{name}-{n}"
        self._taken.add(found.lower())
        return found + self.suffix

    def give_back(self, name: str) -> None:
        """Allow a name again, of a part that was not written."""
        self._taken.discard(name.removesuffix(self.suffix).lower())


def _filled(value: object, width: str) -> str:
    if isinstance(value, int):
        return format(value, f"0{width}d") if width else str(value)
    return str(value).ljust(int(width), "_") if width else str(value)
