"""WebSocket frames of a client: checked, joined to whole messages, and written again for a server."""

from __future__ import annotations

from collections.abc import Callable

TEXT, BINARY, CLOSE = 1, 2, 8
_CONTINUED, _DATA, _CONTROL = 0, (1, 2), (8, 9, 10)
#: Codes of a close frame: the client broke the protocol, or sent too much.
PROTOCOL_ERROR, TOO_LARGE = 1002, 1009
#: Returns what to pass on of a message, given whether it is text and its bytes; None: nothing.
Filter = Callable[[bool, bytes], bytes | None]


class FrameError(Exception):
    """Frames that are not accepted; *code* is for the close frame."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class ClientFrames:
    """Parser of one client's frames, without compression.

    largest  most bytes of a message
    chosen   called with each message
    """

    def __init__(self, largest: int, chosen: Filter) -> None:
        self._largest, self._chosen = largest, chosen
        self._bytes = bytearray()
        self._message = bytearray()
        self._is_text: bool | None = None

    def feed(self, data: bytes) -> bytes:
        """Return the frames for the server that *data* completes; raises FrameError."""
        self._bytes += data
        out = []
        while (frame := self._next()) is not None:
            opcode, final, content = frame
            if opcode in _CONTROL:
                out.append(_masked(opcode, content))
                continue
            if (opcode == _CONTINUED) == (self._is_text is None):
                raise FrameError(PROTOCOL_ERROR, "fragments of messages are mixed up")
            if opcode != _CONTINUED:
                self._is_text = opcode == TEXT
            self._message += content
            if final:
                passed = self._chosen(bool(self._is_text), bytes(self._message))
                if passed is not None:
                    out.append(_masked(TEXT if self._is_text else BINARY, passed))
                self._message.clear()
                self._is_text = None
        return b"".join(out)

    def _next(self) -> tuple[int, bool, bytes] | None:
        """Return opcode, whether it is the last of a message, and content of the next frame; None: not all is here."""
        given = self._bytes
        if len(given) < 2:
            return None
        opcode, final, size, at = given[0] & 0x0F, given[0] >= 0x80, given[1] & 0x7F, 2
        if given[0] & 0x70 or opcode not in (_CONTINUED, *_DATA, *_CONTROL):
            raise FrameError(PROTOCOL_ERROR, "a frame of an unknown kind")
        if given[1] < 0x80:
            raise FrameError(PROTOCOL_ERROR, "frames of clients are masked")
        if opcode in _CONTROL and (size > 125 or not final):
            raise FrameError(PROTOCOL_ERROR, "a control frame is too long or in fragments")
        if size > 125:
            at += 2 if size == 126 else 8
            if len(given) < at:
                return None
            size = int.from_bytes(given[2:at], "big")
        # Before the content has come, so that no more is kept than is accepted.
        if size + (0 if opcode in _CONTROL else len(self._message)) > self._largest:
            raise FrameError(TOO_LARGE, f"messages have at most {self._largest} bytes here")
        end = at + 4 + size
        if len(given) < end:
            return None
        content = _exclusive_or(bytes(given[at + 4 : end]), bytes(given[at : at + 4]))
        del given[:end]
        return opcode, final, content


def close_frame(error: FrameError) -> bytes:
    """Return the frame with which a server ends the connection."""
    content = error.code.to_bytes(2, "big") + error.reason.encode()[:120]
    return bytes((0x80 | CLOSE, len(content))) + content


def _exclusive_or(data: bytes, key: bytes) -> bytes:
    """Return *data* with the mask *key* removed."""
    size = len(data)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")).to_bytes(size, "little")


def _masked(opcode: int, content: bytes) -> bytes:
    """Return one frame as clients send it; the mask is zero, since no proxy follows that could be deceived."""
    size = len(content)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + bytes(4) + content


#: Frame of a client that leaves.
GOING_AWAY = _masked(CLOSE, (1001).to_bytes(2, "big"))
