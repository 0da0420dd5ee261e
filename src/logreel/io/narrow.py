"""NumPy on systems whose memory has 32-bit addresses, such as browsers, as it is on all others.

Positions, counts and times are int64 in all of logreel: logs are larger than 2 GiB, and times are nanoseconds. There,
``numpy.repeat`` and others refuse such numbers, because an address has 32 bits; and ``numpy.arange`` and others give
int32, in which a product with nanoseconds silently overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: Functions that refuse int64, and which of their arguments are counts or places.
REFUSING = {"repeat": 1, "bincount": 0}
#: Functions that give the integers of the system where no type is asked for.
GIVING = (
    "arange",
    "argsort",
    "bincount",
    "cumsum",
    "flatnonzero",
    "lexsort",
    "nonzero",
    "searchsorted",
    "sum",
)


def mend() -> None:
    """Have these functions take and give int64, in the whole process."""
    for name, argument in REFUSING.items():
        setattr(np, name, taking_int64(getattr(np, name), argument))
    for name in GIVING:
        setattr(np, name, giving_int64(getattr(np, name)))


def taking_int64(call: Callable[..., Any], argument: int, system: type[np.signedinteger] = np.intp) -> Any:
    """Return *call* with one of its arguments cast to integers of the *system*.

    Raises OverflowError where a number is too large for them: there is no memory for so many items.
    """

    def taking(*args: Any, **options: Any) -> Any:
        if len(args) > argument:
            numbers = np.asarray(args[argument])
            if numbers.dtype.kind in "iu" and numbers.dtype != system:
                if numbers.size and int(numbers.max()) > np.iinfo(system).max:
                    raise OverflowError(f"{int(numbers.max())} items are more than memory can hold")
                args = (*args[:argument], numbers.astype(system), *args[argument + 1 :])
        return call(*args, **options)

    return taking


def giving_int64(call: Callable[..., Any], system: type[np.signedinteger] = np.intp) -> Any:
    """Return *call* with integers of the *system* in its result as int64, unless its caller names a type."""

    def giving(*args: Any, **options: Any) -> Any:
        result = call(*args, **options)
        if "dtype" in options or "out" in options:
            return result
        if isinstance(result, tuple):
            return tuple(widened(part) for part in result)
        return widened(result)

    def widened(numbers: Any) -> Any:
        return numbers.astype(np.int64) if getattr(numbers, "dtype", None) == system else numbers

    return giving
