"""The files of a log, for what writes from it: none may be replaced, and encrypted ones need permission, and a note."""

from __future__ import annotations

from logreel.errors import UsageError
from logreel.log.log import Log

#: Hint for reports that people read in Python and on the command line.
FOR_BOTH = "decrypt=True (--decrypt) allows that"


def inputs_of(log: Log) -> list[str]:
    """Return the names of all files that a log stands for, which no output may replace: also of copies left out."""
    sources = [(part.name, part.source) for part in log.parts]
    return [name for own, source in sources for name in (own, source.name, *source.copies)]


def decrypted_notes(log: Log, allowed: bool = False) -> list[str]:
    """Return a sentence for each encrypted file of *log*: what is written from it can be read without its key.

    Everything that writes messages of a log calls this first, before it writes anything.

    allowed  True: nothing is written, or the user has allowed it in another way than by opening the log

    Raises UsageError for an encrypted file that was not opened with ``decrypt=True``.
    """
    if not allowed and (error := refusal(log)) is not None:
        raise error
    files = [part for part in log.parts if part.encryption]
    return [
        f"{part.name} is encrypted ({part.encryption}), what was written from it is not" for part in files
    ]


def refusal(log: Log, hint: str | None = None) -> UsageError | None:
    """Return the error for writing messages of *log*; None if it is not encrypted, or was opened with ``decrypt=True``.

    hint  what to do about it; None: how to open it in Python, or the flag on the command line
    """
    for part in log.parts:
        if part.encryption and not part.options.get("decrypt"):
            return UsageError(
                f"is encrypted ({part.encryption}), and what is written from it would not be",
                path=part.name,
                hint=hint or "pass logreel.open(path, decrypt=True) to allow that",
            )
    return None


def allow_decrypted(log: Log) -> Log:
    """Return *log*, with content of its encrypted files allowed to be written, also by other processes that open it."""
    for part in (log, *log.parts):
        part.options["decrypt"] = True
    return log
