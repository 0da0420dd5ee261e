"""Edits and migrations that a log gets in the pass that writes it in another form."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.io.two_pass import written_apart
from logreel.log.joined_log import JoinedLog, earlier
from logreel.log.log import Log
from logreel.ops.edit.edit import Edits, plan_edits
from logreel.ops.edit.recipe import Recipe, RecipeOptions, read_recipe
from logreel.ops.migrate.migrate import Migration, plan_migration
from logreel.ops.migrate.plan import Files, Planner
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part, part_of, whole_log
from logreel.ops.rewrite.target import Target, format_of
from logreel.ops.rewrite.transformed import TransformedLog, transformed
from logreel.ops.selection import Selection
from logreel.registry.open import open_log

#: Edits as a recipe, the path of one, or members of one as for ``logreel.edit``.
Edit = Recipe | RecipeOptions | str | os.PathLike[str]


class MigrateOptions(TypedDict, total=False):
    """Parameters of ``logreel.migrate``, without source and target."""

    rules: Files
    to: Files
    known: bool
    partial: bool


#: A migration by its parameters, or with the definitions that logreel knows (True).
Migrate = MigrateOptions | bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a log before its messages are selected; None: no such change.

    recipe   edits, which come first
    migrate  migration of the types of messages
    """

    recipe: Recipe | None = None
    migrate: MigrateOptions | None = None

    @classmethod
    def of(cls, edit: Edit | None, migrate: Migrate | None) -> Changes:
        """Return the changes as callers give them; raises UsageError for what is none."""
        recipe: Recipe | None
        if edit is None or isinstance(edit, Recipe):
            recipe = edit
        elif isinstance(edit, Mapping):
            recipe = Recipe.of(**edit)
        else:
            recipe = read_recipe(edit)
        if migrate is None or isinstance(migrate, bool):
            return cls(recipe, MigrateOptions() if migrate else None)
        unknown = set(migrate) - set(MigrateOptions.__annotations__)
        if unknown:
            known = ", ".join(MigrateOptions.__annotations__)
            raise UsageError(f"{min(unknown)!r} is no option of a migration; there are {known}")
        return cls(recipe, migrate)

    def __bool__(self) -> bool:
        return self.recipe is not None or self.migrate is not None

    @property
    def renames_before_migration(self) -> bool:
        """Whether topics get other names before types are looked at, which some formats name after their topic."""
        return self.migrate is not None and self.recipe is not None and bool(self.recipe.rename)

    def _migration(self, log: Log) -> tuple[Part, Migration, list[str]]:
        options: dict[str, Any] = {**(self.migrate or {})}
        partial = options.pop("partial", False)
        return plan_migration(log, Planner(**options), partial)

    def made_of(
        self, log: Log, files: ExitStack, folder: str | None = None, keeps_content: bool = False
    ) -> ChangedLog:
        """Return *log* with the changes, without writing it.

        files, folder  for the temporary file of several files, which become one first
        keeps_content  what the log holds besides messages stays as it is
        """
        made = ChangedLog(log, {})
        if isinstance(log, JoinedLog):
            made.take(_merged(log, files, folder))
            log = made.log
        if self.recipe is not None:
            part, edits = plan_edits(log, self.recipe)
            made.take(transformed(part, [edits], keeps_content), edits, edits.plan.problems)
        if self.migrate is not None:
            part, migration, skipped = self._migration(made.log)
            made.take(transformed(part, [migration], keeps_content), migration, skipped)
        return made

    def part_of(
        self, log: Log, chosen: Selection, files: ExitStack, folder: str | None = None
    ) -> tuple[Part, list[Transform], list[str]]:
        """Return what of *log* is written to a log of its format, its transforms, and what is left as it is.

        The selection is about the log with its changes.
        """
        if isinstance(log, JoinedLog):
            joined = _merged(log, files, folder)
            part, transforms, skipped = self.part_of(joined.log, chosen, files, folder)
            return replace(part, notes=(*joined.notes, *part.notes)), transforms, [*joined.skipped, *skipped]
        part, transforms, skipped = whole_log(log), list[Transform](), list[str]()
        if self.recipe is not None:
            part, edits = plan_edits(log, self.recipe)
            transforms.append(edits)
            skipped += edits.plan.problems
        if self.migrate is not None:
            migrated, migration, left = self._migration(log)
            transforms.append(migration)
            skipped += left
            names = {n: topic for n, topic in migrated.names.items() if n not in part.names}
            part = replace(part, names={**part.names, **names}, notes=(*part.notes, *migrated.notes))
        if not chosen.is_part:
            return part, transforms, skipped
        made = self.made_of(log, files, folder)
        selected = part_of(made.log, chosen)
        moves = any(transform.moves_times for transform in made.transforms)
        start, end = (None, None) if moves else earlier((selected.start, selected.end), part.shift)
        return (
            replace(
                part,
                rows={n: made.source_rows(n, rows) for n, rows in selected.rows.items()},
                start=start,
                end=end,
                floor=None if selected.floor is None or moves else selected.floor - part.shift,
                notes=(*part.notes, *selected.notes),
                filtered=True,
                windows=selected.windows,
            ),
            transforms,
            skipped,
        )


def _merged(log: JoinedLog, files: ExitStack, folder: str | None) -> TransformedLog:
    """Return the files of *log* as one, see ``written_apart``, as long as *files* are open.

    What is redacted in one file has to be found in all of them: in their metadata, parameters and attachments, too.
    """
    fmt, parts = format_of(log), [whole_log(log)]
    done, content = files.enter_context(
        written_apart(
            lambda path, out: rewrite(parts, Target(path, format=fmt.name), out=out), fmt.suffixes[0], folder
        )
    )
    merged = files.enter_context(open_log(content))
    merged.name = log.name
    return TransformedLog(merged, {}, list(done.notes), list(done.skipped))


@dataclass
class ChangedLog:
    """A log with changes that are not written.

    rows        rows in the source by channel number; a channel without keeps its rows
    transforms  what changed it
    """

    log: Log
    rows: dict[int, I64]
    transforms: tuple[Transform, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def take(
        self, made: TransformedLog, transform: Transform | None = None, skipped: Sequence[str] = ()
    ) -> None:
        """Go on with *made*, which *transform* made of the log so far; None: that in one file."""
        before = self.rows
        self.rows = {n: before[n][rows] if n in before else rows for n, rows in made.rows.items()}
        self.log, self.transforms = made.log, (*self.transforms, *([] if transform is None else [transform]))
        self.notes, self.skipped = (*self.notes, *made.notes), (*self.skipped, *skipped, *made.skipped)

    def source_rows(self, channel: int, rows: slice | I64) -> I64:
        """Return int64[n]: the rows in the source of messages at *rows* of a channel."""
        return self.rows[channel][rows] if channel in self.rows else np.asarray(rows, np.int64)


@dataclass
class ChangedContent(Transform):
    """What edits change of a log besides messages, for a log whose messages have their changes already.

    is_copied  the content is copied from the log without its changes, not imported with them
    """

    edits: Edits
    is_copied: bool

    def changes(self, part: Part) -> bool:
        """Return whether copied content changes."""
        return self.is_copied

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Have the content written with its changes."""
        if self.is_copied:
            self.edits.change_content(new)
        return channels

    def verify(self, new: NewLog, log: Log) -> None:
        """Search *log* for what was to be removed."""
        self.edits.search(log, new.target.path)
