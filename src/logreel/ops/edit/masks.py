"""Masks: what identities, times and places become in names, texts and values, wherever a log has them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np

from logreel.ops.edit.meanings import words
from logreel.ops.edit.pictures import without_metadata

NS = 10**9
#: Least share of printable bytes in content that is text.
PRINTABLE = 0.85
#: Deepest structure of JSON that is masked.
DEEP = 40
#: Shortest text that is replaced wherever it occurs, and most of them.
SHORT, MANY = 3, 20_000


class Mask(Protocol):
    """One kind of redaction, as far as texts and values are concerned.

    kind    ``identity``, ``time`` or ``place``
    repeats True: a masked text stays as it is when it is masked again
    """

    kind: str
    repeats: bool

    def text(self, text: bytes) -> bytes:
        """Return *text* without what the mask hides."""
        ...

    def value(self, name: str, value: Any) -> Any:
        """Return the new value of an entry called *name*; texts are not masked here but in ``text``."""
        ...

    def mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        """Return the entries of a map, of which several may belong together."""
        ...

    def numbers(self, values: list[Any]) -> list[Any]:
        """Return the numbers of an array, of which neighbours may belong together."""
        ...


def masked(mask: Mask, name: str, value: Any, deep: int = 0) -> Any:
    """Return *value*, an entry called *name* or a structure of JSON, as *mask* leaves it."""
    if deep > DEEP:
        return value
    match value:
        case Mapping():
            entries = mask.mapping({str(key): item for key, item in value.items()})
            return {
                mask.text(key.encode("utf-8", "surrogateescape")).decode("utf-8", "replace"): masked(
                    mask, key, item, deep + 1
                )
                for key, item in entries.items()
            }
        case list() | tuple():
            if len(value) > 1 and all(isinstance(item, int | float) for item in value):
                value = mask.numbers(list(value))
            return [masked(mask, name, item, deep + 1) for item in value]
        case str():
            new = mask.value(name, value)
            if not isinstance(new, str):
                return new
            raw = new.encode("utf-8", "surrogateescape")
            return mask.text(raw).decode("utf-8", "surrogateescape") if new == value else new
        case bytes():
            new = mask.value(name, value)
            return content(mask, new) if new == value else new
        case bool() | None:
            return value
        case int() | float():
            return mask.value(name, value)
        case _:
            return value


def content(mask: Mask, data: bytes) -> bytes:
    """Return content of a file or a field: pictures without their metadata, texts without what is hidden."""
    bare = without_metadata(data)
    if bare is not None:
        return bare
    return mask.text(data) if is_text(data) else data


def json_payload(mask: Mask, data: bytes) -> bytes:
    """Return a message in JSON without what *mask* hides; what is no JSON is masked as text."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return mask.text(data)
    new = masked(mask, "", value)
    if new == value:
        return data
    return json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def is_text(data: bytes) -> bool:
    """Return whether *data* is text for the most part."""
    if not data:
        return False
    sample = np.frombuffer(data[: 1 << 16], np.uint8)
    fine = ((sample >= 32) & (sample != 127)) | (sample == 9) | (sample == 10) | (sample == 13)
    return bool(fine.mean() >= PRINTABLE)


# ------------------------------------------------------------------------------------------------- identity

#: First words of pseudonyms by the words of names that say whose the value is.
_WHOSE = {
    **dict.fromkeys(("uuid", "guid", "uid", "imei", "iccid", "imsi", "bssid", "ssid", "vin", "plate"), "id"),
    **dict.fromkeys(("subtype",), "board"),
    **dict.fromkeys(("registration", "mmsi", "icao", "license", "licence"), "id"),
    **dict.fromkeys(("serial", "serialnumber", "serialno", "sn"), "serial"),
    **dict.fromkeys(("host", "hostname", "computer", "machine"), "host"),
    **dict.fromkeys(
        ("user", "username", "operator", "pilot", "driver", "owner", "author", "person"), "person"
    ),
    **dict.fromkeys(
        ("crew", "commander", "observer", "contact", "phone", "engineer", "technician"), "person"
    ),
    **dict.fromkeys(("callsign", "nickname"), "vehicle"),
    **dict.fromkeys(("email", "mail"), "mail"),
    **dict.fromkeys(("mac", "ip", "ipaddress", "macaddress"), "address"),
    **dict.fromkeys(("customer", "company", "organisation", "organization", "fleet"), "name"),
    **dict.fromkeys(("path", "file", "filename", "folder", "directory", "dir"), "path"),
    **dict.fromkeys(("callerid", "callerids"), "/node"),
}
#: Words that say whose it is only next to ``name``, ``id``, ``serial`` or ``number``.
_OWNERS = {
    **dict.fromkeys(("vehicle", "robot", "drone", "aircraft", "car", "ship", "truck", "platform"), "vehicle"),
    **dict.fromkeys(
        ("board", "device", "hardware", "sensor", "imu", "camera", "lidar", "receiver"), "device"
    ),
    **dict.fromkeys(("call",), "vehicle"),
    **dict.fromkeys(("tail", "chassis"), "id"),
}
_NAMES = {"name", "id", "ids", "no", "number", "sign", "serial"}
#: Words of names that only look like these.
_NOT_WHOSE = {
    *("type", "version", "model", "count", "state", "status", "mode", "valid", "format", "flags", "size"),
    *("offset", "length", "descriptor", "hash", "rate", "msg", "frame", "topic", "schema", "time", "prof"),
}
#: Values that say nothing.
_COMMON = {
    *("px4", "unknown", "none", "true", "false", "robot", "vehicle", "user", "root", "localhost", "default"),
    *(
        "nuttx",
        "linux",
        "the",
        "and",
        "null",
        "undefined",
        "not set",
        "name",
        "test",
        "base_link",
        "map",
        "nan",
    ),
    *("odom", "camera", "imu", "gps", "n/a", "home", "drone", "operator", "pilot", "position", "ros", "log"),
    *(
        "data",
        "text",
        "value",
        "data",
        "status",
        "error",
        "info",
        "warning",
        "debug",
        "invalid",
        "valid",
        "unset",
    ),
}
_TOKEN = re.compile(rb"[\w/]+-[a-p]{8}\b")
_MAIL = rb"[A-Za-z0-9._%+-]+@[A-Za-z][A-Za-z0-9.-]*[A-Za-z0-9]"
_MAC = rb"(?<![0-9A-Za-z:-])[0-9A-Fa-f]{2}([:-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){4}(?![0-9A-Za-z:])"
_IP4 = rb"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)"
_IP6 = (
    rb"(?<![\w:])(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}"
    rb"|(?:fe80|f[cd][0-9a-f]{2}|2[0-9a-f]{3}):[0-9A-Fa-f:]*::?[0-9A-Fa-f:]+)(?![\w:])"
)
_UUID = rb"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])"
_PATH = (
    rb"(?<![\w./~-])(?:(?:/(?:home|Users|root|media|mnt|tmp|var|opt|srv|workspace|scratch|nfs|export|run)|~)"
    rb"(?:/[^\s\"'<>|:,;)\]}\x00-\x1f]+)+|[A-Za-z]:\\[^\s\"'<>|:*?,;\x00-\x1f]+|\\\\[\w.-]+\\[^\s\"'<>|:*?]+)"
)
_HOST = (
    rb"(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+"
    rb"(?:local|lan|internal|intranet|corp|localdomain|com|org|net|edu|gov)(?![\w.-]*\w)"
)
_URL = rb"(?<=://)[A-Za-z0-9][^\s/:@\"'<>\]]*"
_HASH = rb"(?<![0-9A-Za-z])(?:0x)?(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{24,36}(?![0-9A-Za-z])"
_USER = re.compile(rb"(?:/home|/Users|[A-Za-z]:\\Users)[/\\]([^\s/\\\"':]+)")
_KEYED = re.compile(
    rb"(?i)(?<![a-z])(?:(?:vehicle|robot|drone|aircraft|board|device|call)[ _-]?(?:name|id|sign|no|number|serial)"
    rb"|serial(?:[ _-]?(?:number|no))?|s/?n|host(?:[ _-]?name)?|user(?:[ _-]?name)?|operator|pilot|driver|owner|author"
    rb"|callsign|u?uid|(?:px4)?guid|imei|vin|nickname)\.?[\"']?\s*(?::|=|\bis\b)\s*[\"']?"
    rb"((?-i:[A-Z][\w'-]+(?: [A-Z][\w'-]+){1,2})|[^\s\"',;(){}\[\]]{3,64})"
)
_VERSION = re.compile(rb"(?i)(?:v|ver|version|release|firmware)[\s.:=]*\Z")


def whose(name: str) -> str:
    """Return the first word of a pseudonym for values called *name*; empty if the name is not that of an identity."""
    its = words(name)
    if its & _NOT_WHOSE:
        return ""
    for word in its:
        if word in _WHOSE:
            return _WHOSE[word]
    if its & _NAMES:
        return next((_OWNERS[word] for word in its if word in _OWNERS), "")
    return ""


@dataclass(slots=True)
class IdentityMask:
    """Pseudonyms: equal values become equal tokens, by a secret that is never written."""

    kind: str = "identity"
    repeats: bool = True
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    #: Pseudonyms by the texts that they replace, which are learned from names and are replaced everywhere.
    learned: dict[bytes, bytes] = field(default_factory=dict)
    #: Names of topics and types, which are no identities, in lower case.
    public: set[str] = field(default_factory=set)
    #: Texts that were replaced.
    replaced: set[bytes] = field(default_factory=set)
    _anywhere: re.Pattern[bytes] | None = None
    _cache: dict[bytes, bytes] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)

    def token(self, word: str, value: bytes) -> bytes:
        """Return the pseudonym of *value*; *word*: its first word."""
        if value in self.learned:
            return self.learned[value]
        digest = hmac.new(self._secret, value, hashlib.sha256).digest()
        letters = bytes(97 + (byte & 15) for byte in digest[:8])
        return word.encode() + b"-" + letters

    def number(self, value: int) -> int:
        """Return the pseudonym of a number, of 1 to 31 bits as the number has; 0 and 1 stay."""
        if -1 <= value <= 1:
            return value
        bits = min(31, abs(value).bit_length())
        if value not in self._numbers:
            taken = set(self._numbers.values())
            low, high = (1 << (bits - 1)), (1 << bits) - 1
            for turn in range(1000):
                digest = hmac.new(self._secret, f"{value} {turn}".encode(), hashlib.sha256).digest()
                new = low + int.from_bytes(digest[:8], "little") % (high - low + 1)
                if (new != abs(value) and new not in taken) or turn == 999:
                    self._numbers[value] = new
                    break
        return self._numbers[value]

    def knows_number(self, value: int) -> bool:
        """Return whether *value* is a number that was replaced, and long enough to be nothing else."""
        return abs(value) > 0xFFFF and value in self._numbers

    def learn(self, word: str, value: str | bytes) -> None:
        """Remember a value that is replaced wherever it occurs."""
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        raw = raw.strip(b" \t\r\n\0.")
        plain = raw.decode("utf-8", "replace").strip("/").lower()
        dull = (
            len(plain) < SHORT
            or plain in _COMMON
            or plain in self.public
            or (plain.replace(".", "").isdigit() and len(plain) < 6)
        )
        if (
            dull
            or len(raw) > 200
            or len(self.learned) >= MANY
            or raw in self.learned
            or _TOKEN.fullmatch(raw)
        ):
            return
        self.learned[raw] = self.token(word, raw)
        self._anywhere = None
        self._cache.clear()

    def learn_from(self, text: bytes) -> None:
        """Remember the values that a text states, such as ``pilot: Kim`` and the user in ``/home/kim``."""
        for match in _KEYED.finditer(text):
            word = whose(_name_before(match)) or "name"
            # Words such as "serial: open" are no numbers.
            if word not in ("serial", "id", "device", "board") or re.search(rb"\d", match[1]):
                self.learn(word, match[1])
        for match in _USER.finditer(text):
            self.learn("person", match[1])
        for match in re.finditer(_MAIL, text):
            self.learn("person", match[0].partition(b"@")[0])
        for match in re.finditer(_HOST, text):
            self.learn("host", match[0].partition(b".")[0])

    def learn_entries(self, name: str, value: Any, deep: int = 0) -> None:
        """Remember the identities among metadata and other structures."""
        if isinstance(value, Mapping) and deep < DEEP:
            for key, item in value.items():
                self.learn_entries(str(key), item, deep + 1)
        elif isinstance(value, list | tuple) and deep < DEEP:
            for item in value:
                self.learn_entries(name, item, deep + 1)
        elif isinstance(value, str | bytes):
            word = whose(name)
            if word and word != "path" and len(value) < 200:
                self.learn(word, value)
            raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            self.learn_from(raw)
            if raw[:1] in (b"{", b"[") and deep < DEEP:
                try:
                    self.learn_entries("", json.loads(raw), deep + 1)
                except (ValueError, RecursionError):
                    return

    def text(self, text: bytes) -> bytes:
        """See Mask."""
        return self._text(text, _PATH, _MAIL, _URL, _UUID, _MAC, _IP6, _IP4, _HOST, _HASH)

    def name(self, text: bytes) -> bytes:
        """Return the name of a topic or frame, in which slashes make no paths."""
        return self._text(text, _MAIL, _UUID, _MAC, _IP4)

    def names(self, text: bytes) -> bytes:
        """Return *text* with only what was learned replaced."""
        return self._text(text)

    def _text(self, text: bytes, *patterns: bytes) -> bytes:
        key = text if len(text) < 300 and len(patterns) > 5 else None
        if key is not None and key in self._cache:
            return self._cache[key]
        new = text
        for pattern in patterns:
            new = _compiled(pattern).sub(lambda m, p=pattern: self._replaced(m, p), new)  # type: ignore[misc]
        if self.learned:
            if self._anywhere is None:
                each = sorted(self.learned, key=len, reverse=True)
                alternatives = b"|".join(re.escape(item) for item in each)
                self._anywhere = re.compile(b"(?<![A-Za-z0-9])(?:" + alternatives + b")(?![A-Za-z0-9])")
            new = self._anywhere.sub(self._learned, new)
        if key is not None and len(self._cache) < 100_000:
            self._cache[key] = new
        return new

    def _learned(self, match: re.Match[bytes]) -> bytes:
        self.replaced.add(match[0])
        return self.learned[match[0]]

    def _replaced(self, match: re.Match[bytes], pattern: bytes) -> bytes:
        old = match[0]
        if _TOKEN.fullmatch(old) or (b"-" in old and _TOKEN.search(old)):
            return old
        if pattern == _IP4:
            parts = [int(item) for item in old.split(b".")]
            local = parts[0] in (0, 127, 255) or max(parts) > 255
            if local or _VERSION.search(match.string[max(0, match.start() - 12) : match.start()]):
                return old
        if pattern == _URL and (old == b"localhost" or old.startswith(b"127.")):
            return old
        word = {_PATH: "path", _MAIL: "mail", _UUID: "id", _MAC: "address", _HASH: "serial"}.get(
            pattern, "address" if pattern in (_IP4, _IP6) else "host"
        )
        if pattern == _PATH:
            end = re.search(rb"\.[A-Za-z]\w{0,5}\Z", old)
            self.replaced.add(old)
            return b"/" + self.token(word, old) + (end[0] if end else b"")
        self.replaced.add(old)
        return self.token(word, old)

    def value(self, name: str, value: Any) -> Any:
        """See Mask."""
        word = whose(name)
        if isinstance(value, int):
            is_id = bool(word) and word not in ("person", "path", "/node", "name", "host")
            return self.number(value) if is_id or self.knows_number(value) else value
        if not word or not isinstance(value, str | bytes) or not value:
            return value
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        plain = raw.strip(b" \0").decode("utf-8", "replace").lower()
        if plain in _COMMON or not plain or _TOKEN.fullmatch(raw):
            return value
        if word == "path" and not re.search(rb"[/\\]", raw):
            return value
        new = self.token(word, raw.strip(b" \0"))
        self.replaced.add(raw.strip(b" \0"))
        if word == "path":
            end = re.search(rb"\.[A-Za-z]\w{0,5}\Z", raw)
            new += end[0] if end else b""
        return new.decode() if isinstance(value, str) else new

    def mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        """See Mask."""
        return entries

    def numbers(self, values: list[Any]) -> list[Any]:
        """See Mask."""
        return values


def _name_before(match: re.Match[bytes]) -> str:
    return re.split(r"[:=]| is ", match[0].decode("latin-1"))[0].replace(" ", "_").replace("/", "").lower()


_PATTERNS: dict[bytes, re.Pattern[bytes]] = {}


def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    if pattern not in _PATTERNS:
        _PATTERNS[pattern] = re.compile(pattern)
    return _PATTERNS[pattern]


# ----------------------------------------------------------------------------------------------------- time

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = rb"(?P<h>[01]?\d|2[0-3])(?P<c>[-:_.]?)(?P<m>[0-5]\d)(?P=c)(?P<s>[0-5]\d|60)"
_NAME = rb"(?i:(?P<b>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)"
_YEAR = rb"(?P<y>(?:19[89]|20\d)\d)"
_DATES = tuple(
    re.compile(item)
    for item in (
        rb"(?<![\d.])" + _YEAR + rb"(?P<q>[-/:._]?)(?P<o>0[1-9]|1[0-2])(?P=q)(?P<d>0[1-9]|[12]\d|3[01])"
        rb"(?:[T _/-]{1,2}" + _CLOCK + rb")?(?![\d])",
        rb"(?<![\d.])" + _YEAR + rb"(?P<q>[-/:._])(?P<o>1[0-2]|[1-9])(?P=q)(?P<d>[12]\d|3[01]|[1-9])"
        rb"(?:[T _/-]{1,2}" + _CLOCK + rb")?(?![\d])",
        rb"(?:(?P<w>(?i:Mon|Tue|Wed|Thu|Fri|Sat|Sun))[a-z]*,? +)?(?<![\w])(?P<d>\d{1,2})(?:\. ?|[ -])"
        + _NAME
        + rb"[ ,.-]+"
        + _YEAR
        + rb"(?:[ T,]+"
        + _CLOCK
        + rb")?(?!\d)",
        rb"(?:(?P<w>(?i:Mon|Tue|Wed|Thu|Fri|Sat|Sun))[a-z]*,? +)?\b"
        + _NAME
        + rb"\.? +(?P<d>\d{1,2})(?:,? +"
        + _CLOCK
        + rb")?,? +(?:[A-Z]{3,4} )?"
        + _YEAR
        + rb"(?!\d)",
        rb"(?<![\d.])(?P<d>0?[1-9]|[12]\d|3[01])(?P<q>[./])(?P<o>0?[1-9]|1[0-2])(?P=q)"
        + _YEAR
        + rb"(?:[ T,]+"
        + _CLOCK
        + rb")?(?!\d)",
    )
)
_HOURS = re.compile(rb"(?<![\d:.])(?P<h>[01]\d|2[0-3])(?P<c>[:_])(?P<m>[0-5]\d)(?P=c)(?P<s>[0-5]\d)(?![\d:])")
_EPOCH = re.compile(rb"(?<![\d.])(?:\d{10}|\d{13}|\d{16}|\d{19})(?!\d)")
_SENTENCE = re.compile(rb"\$([A-Z]{2}(?:GGA|RMC|ZDA|GLL|GNS|GBS|GST)),([^*\r\n$]*)(\*[0-9A-Fa-f]{2})?")
#: Times that are farther from those of the log are not its times.
NEAR = 31 * 86400 * NS
#: Units of whole times in ns by their digits.
_UNITS = {10: NS, 13: 10**6, 16: 1000, 19: 1}


@dataclass(slots=True)
class TimeMask:
    """Times moved by one secret offset.

    offset      ns that is added, whole seconds
    start, end  first and last time of the log, ns since 1970; None: unknown
    """

    offset: int
    start: int | None
    end: int | None
    kind: str = "time"
    repeats: bool = False

    @classmethod
    def of(cls, start: int | None, end: int | None) -> TimeMask:
        """Return a mask with a random offset of 1 to 9 years to the past, as far as times stay after 1980."""
        first = (start or 1_700_000_000 * NS) // NS
        most = min(9 * 365 * 86400, max(first - 330_000_000, 86400 * 2))
        least = min(365 * 86400, most // 2)
        return cls(-NS * (least + secrets.randbelow(most - least)), start, end)

    def is_near(self, ns: int) -> bool:
        """Return whether *ns* is a time of the log, or a month from it at most."""
        if self.start is None:
            return False
        return self.start - NEAR < ns < (self.end or self.start) + NEAR

    def text(self, text: bytes) -> bytes:
        """See Mask."""
        new = _SENTENCE.sub(self._sentence, text) if b"$G" in text else text
        spans: list[tuple[int, int, bytes]] = []
        for pattern in _DATES:
            for match in pattern.finditer(new):
                if not any(lo < match.end() and match.start() < hi for lo, hi, _ in spans):
                    moved = self._date(match)
                    spans += [] if moved is None else [(*match.span(), moved)]
        for match in _HOURS.finditer(new):
            if not any(lo < match.end() and match.start() < hi for lo, hi, _ in spans):
                moved = self._hours(match)
                spans += [] if moved is None else [(*match.span(), moved)]
        for match in _EPOCH.finditer(new):
            if not any(lo < match.end() and match.start() < hi for lo, hi, _ in spans):
                unit = _UNITS[len(match[0])]
                if self.is_near(int(match[0]) * unit):
                    spans.append((*match.span(), b"%d" % (int(match[0]) + self.offset // unit)))
        for lo, hi, part in sorted(spans, reverse=True):
            new = new[:lo] + part + new[hi:]
        return new

    def _date(self, match: re.Match[bytes]) -> bytes | None:
        """Return a date, perhaps with a time of day, after the offset, as it was written."""
        fields_of_date = {key: item for key, item in match.groupdict().items() if item is not None}
        month = (
            _MONTHS.index(fields_of_date["b"][:3].decode().lower()) + 1
            if "b" in fields_of_date
            else int(fields_of_date["o"])
        )
        at = self._time_of_day()
        clock = (
            [int(fields_of_date[key]) for key in "hms"]
            if "h" in fields_of_date
            else [at // 3600, at // 60 % 60, at % 60]
        )
        try:
            was = datetime(
                int(fields_of_date["y"]),
                month,
                int(fields_of_date["d"]),
                clock[0],
                clock[1],
                min(clock[2], 59),
                tzinfo=UTC,
            )
        except ValueError:
            return None
        now = was + timedelta(seconds=self.offset // NS)
        new = {
            "y": b"%04d" % now.year,
            "o": b"%02d" % now.month if len(fields_of_date.get("o", b"")) == 2 else b"%d" % now.month,
            "d": b"%02d" % now.day if len(fields_of_date["d"]) == 2 else b"%d" % now.day,
            "b": _MONTHS[now.month - 1].capitalize().encode(),
            "w": _DAYS[now.weekday()].capitalize().encode(),
            "h": b"%02d" % now.hour,
            "m": b"%02d" % now.minute,
            "s": b"%02d" % now.second,
        }
        return _with_groups(match, {key: item for key, item in new.items() if key in fields_of_date})

    def _time_of_day(self) -> int:
        return 43200 if self.start is None else self.start // NS % 86400

    def _hours(self, match: re.Match[bytes]) -> bytes | None:
        """Return a time of day after the offset; with colons only if it is one of the log, since it may be a length."""
        at = int(match["h"]) * 3600 + int(match["m"]) * 60 + int(match["s"])
        if match["c"] == b":":
            if self.start is None:
                return None
            since = (at - self.start // NS) % 86400
            if min(since, 86400 - since) > 3600 + ((self.end or self.start) - self.start) // NS:
                return None
        now = (at + self.offset // NS) % 86400
        new = {"h": b"%02d" % (now // 3600), "m": b"%02d" % (now // 60 % 60), "s": b"%02d" % (now % 60)}
        return _with_groups(match, new)

    def _sentence(self, match: re.Match[bytes]) -> bytes:
        """Return a sentence of NMEA with its time and date after the offset."""
        sentence, fields = match[1][2:], match[2].split(b",")
        place = {b"GLL": 4}.get(sentence, 0)
        if len(fields) <= place or not re.match(rb"\d{6}", fields[place]):
            return match[0]
        clock = fields[place]
        at = int(clock[:2]) * 3600 + int(clock[2:4]) * 60 + int(clock[4:6])
        now = (at + self.offset // NS) % 86400
        fields[place] = b"%02d%02d%02d" % (now // 3600, now // 60 % 60, now % 60) + clock[6:]
        days = (at + self.offset // NS) // 86400
        if sentence == b"RMC" and len(fields) > 8 and re.fullmatch(rb"\d{6}", fields[8]):
            new = _day(int(fields[8][4:]) + 2000, int(fields[8][2:4]), int(fields[8][:2]), days)
            fields[8] = b"%02d%02d%02d" % (new[2], new[1], new[0] % 100)
        if sentence == b"ZDA" and len(fields) > 3 and all(item.isdigit() for item in fields[1:4]):
            new = _day(int(fields[3]), int(fields[2]), int(fields[1]), days)
            fields[1:4] = b"%02d" % new[2], b"%02d" % new[1], b"%04d" % new[0]
        body, total = match[1] + b"," + b",".join(fields), 0
        for byte in body:
            total ^= byte
        return b"$" + body + (b"*%02X" % total if match[3] else b"")

    def value(self, name: str, value: Any) -> Any:
        """See Mask. Whole numbers and seconds that are times of the log move."""
        if not isinstance(value, int | float) or not value or value != value:
            return value
        for unit in (NS, 10**6, 1000, 1):
            if (
                abs(value) < 1e19
                and (isinstance(value, int) or unit == NS)
                and self.is_near(int(value * unit))
            ):
                return value + (self.offset // unit if isinstance(value, int) else self.offset / NS)
        return value

    def mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        """See Mask. Seconds and nanoseconds may be apart; the seconds move."""
        return entries

    def numbers(self, values: list[Any]) -> list[Any]:
        """See Mask."""
        return values


def _day(year: int, month: int, day: int, days: int) -> tuple[int, int, int]:
    try:
        now = datetime(year, month, day, tzinfo=UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        return year, month, day
    return now.year, now.month, now.day


def _with_groups(match: re.Match[bytes], new: Mapping[str, bytes]) -> bytes:
    """Return the matched text with some groups replaced."""
    text, begin = match[0], match.start()
    for key in sorted(new, key=match.start, reverse=True):
        lo, hi = match.start(key) - begin, match.end(key) - begin
        text = text[:lo] + new[key] + text[hi:]
    return text


def all_texts(value: Any, deep: int = 0) -> Iterable[bytes]:
    """Yield the texts in a structure, names of entries included."""
    if isinstance(value, Mapping) and deep < DEEP:
        for key, item in value.items():
            yield str(key).encode("utf-8", "surrogateescape")
            yield from all_texts(item, deep + 1)
    elif isinstance(value, list | tuple) and deep < DEEP:
        for item in value:
            yield from all_texts(item, deep + 1)
    elif isinstance(value, str):
        yield value.encode("utf-8", "surrogateescape")
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, int | float):
        yield repr(value).encode()


#: A change of texts: from the old one and a function that decodes the message.
Change = Callable[[bytes, Callable[[], Mapping[str, Any]]], bytes]
