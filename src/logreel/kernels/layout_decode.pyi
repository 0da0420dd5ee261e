from collections.abc import Callable
from typing import Any

NUMBERS: int
TIME: int
TEXT: int
STRUCT: int
ITEMS: int
REPEAT: int
STRING: int
BYTES: int
COUNTED: int
LIST: int
REST: int
NEED: int
MOVE: int
ALIGN: int
EXPECT: int
SHORT: int
OTHER: int
TOO_MANY: int

class MessageDecoder:
    def __init__(
        self,
        ops: list[int],
        objects: tuple[Any, ...],
        refuse: Callable[[memoryview, int, int, int, bytes], None],
    ) -> None: ...
    def decode(self, data: memoryview, /) -> dict[str, Any]: ...
