"""What a power failure may leave of files: a model of a disk that is fed with recorded calls of the system.

As in ALICE and CrashMonkey, nothing is on the disk before it was synced, and what was not may be there in part:

* A file: each sector of 512 bytes has its content of any moment since the last sync of the file, independent of other
  sectors; the size is that of any moment since then. Sectors inside the size that were never written are zeros.
* A folder: each change of names since the last sync of the folder is there or not; a rename is there as a whole. The
  sync of a file does not keep its name.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from support.harness.system_calls import Event, Op

SECTOR = 512
Node = Union["File", "Folder"]
#: Content of a disk by path relative to its folder; None: a folder.
State = dict[str, bytes | None]


@dataclass(eq=False)
class File:
    """Content of a file: on disk, as the program sees it, and what may be on disk."""

    durable: bytes = b""
    now: bytearray = field(default_factory=bytearray)
    #: Sizes since the last sync, and contents of sectors that changed, oldest first.
    sizes: list[int] = field(default_factory=list)
    versions: dict[int, list[bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes) -> File:
        return cls(data, bytearray(data), [len(data)])

    def _sector(self, number: int) -> bytes:
        return bytes(self.now[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def change(self, place: int, data: bytes) -> None:
        first, last = place // SECTOR, (place + len(data) + SECTOR - 1) // SECTOR
        for number in range(first, last):
            self.versions.setdefault(number, [self._sector(number)])
        if len(self.now) < place + len(data):
            self.now.extend(bytes(place + len(data) - len(self.now)))
        self.now[place : place + len(data)] = data
        for number in range(first, last):
            self.versions[number].append(self._sector(number))
        self.sizes.append(len(self.now))

    def cut(self, size: int) -> None:
        if size < len(self.now):
            self.change(size, bytes(len(self.now) - size))
            del self.now[size:]
        else:
            self.now.extend(bytes(size - len(self.now)))
        self.sizes.append(size)

    def sync(self) -> None:
        self.durable, self.sizes, self.versions = bytes(self.now), [len(self.now)], {}

    @property
    def is_pending(self) -> bool:
        return len(self.sizes) > 1

    def content(self, size: int, chosen: dict[int, int]) -> bytes:
        """Return the file with size number *size*, and the *chosen* versions of sectors; of others the last one."""
        wanted = self.sizes[size]
        data = bytearray(self.durable[:wanted].ljust(wanted, b"\0"))
        for number, versions in self.versions.items():
            place = number * SECTOR
            if place < wanted:
                data[place : place + SECTOR] = versions[chosen.get(number, -1)][: wanted - place]
        return bytes(data)


@dataclass(eq=False)
class Folder:
    """Entries of a folder: on disk, and as the program sees them."""

    durable: dict[str, Node] = field(default_factory=dict)
    now: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False)
class Naming:
    """A change of names, which is on disk as a whole or not at all."""

    text: str
    entries: list[tuple[Folder, str, Node | None]]


@dataclass(frozen=True)
class Choice:
    """What of the pending changes is on disk.

    names  namings by number; files: for each pending file the number of its size and the versions of its sectors
    """

    text: str
    names: frozenset[int]
    files: tuple[tuple[int, dict[int, int]], ...]


class Disk:
    """A disk with the content of *folder*, all of it synced."""

    def __init__(self, folder: Path) -> None:
        self._root_path = os.path.realpath(folder)
        self._inodes: dict[int, Node] = {}
        self._root = self._load(Path(self._root_path))
        self._pending: list[Naming] = []
        self._files: list[File] = []

    def _load(self, path: Path) -> Node:
        if not path.is_dir():
            node: Node = File.of(path.read_bytes())
        else:
            entries = {one.name: self._load(one) for one in sorted(path.iterdir())}
            node = Folder(dict(entries), dict(entries))
        self._inodes[path.stat().st_ino] = node
        return node

    def _at(self, path: bytes) -> tuple[Folder, str]:
        node = self._root
        *parts, name = os.path.relpath(os.fsdecode(path), self._root_path).split(os.sep)
        for part in parts:
            assert isinstance(node, Folder)
            node = node.now[part]
        assert isinstance(node, Folder)
        return node, name

    def _name(self, text: str, *entries: tuple[Folder, str, Node | None]) -> None:
        for folder, name, node in entries:
            if node is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = node
        self._pending.append(Naming(text, list(entries)))

    def apply(self, event: Event) -> None:
        """Do what a recorded call did."""
        match event.op:
            case Op.CREATE | Op.MKDIR:
                node: Node = File.of(b"") if event.op is Op.CREATE else Folder()
                self._inodes[event.inode] = node
                if isinstance(node, File):
                    self._files.append(node)
                self._name(f"{event.op.name} {os.fsdecode(event.data)}", (*self._at(event.data), node))
            case Op.WRITE | Op.TRUNCATE | Op.FSYNC:
                file = self._inodes[event.inode]
                assert isinstance(file, File)
                if file not in self._files:
                    self._files.append(file)
                if event.op is Op.WRITE:
                    file.change(event.place, event.data)
                elif event.op is Op.TRUNCATE:
                    file.cut(event.place)
                else:
                    file.sync()
            case Op.FSYNC_FOLDER:
                self._sync_folder(self._inodes[event.inode])
            case Op.SYNC_ALL:
                for one in self._files:
                    one.sync()
                self._keep(self._pending)
                self._pending = []
            case Op.RENAME | Op.LINK | Op.EXCHANGE:
                (a, old), (b, new) = self._at(event.data), self._at(event.other)
                node, other = a.now[old], b.now.get(new) if event.op is Op.EXCHANGE else None
                gone = [] if event.op is Op.LINK else [(a, old, other)]
                self._name(
                    f"{event.op.name} {os.fsdecode(event.data)} {os.fsdecode(event.other)}",
                    *gone,
                    (b, new, node),
                )
            case Op.UNLINK | Op.RMDIR:
                self._name(f"{event.op.name} {os.fsdecode(event.data)}", (*self._at(event.data), None))
            case Op.MAP:
                raise AssertionError(f"written through a map, which is not recorded: {event.data!r}")

    def _sync_folder(self, folder: Node) -> None:
        done = [one for one in self._pending if any(entry[0] is folder for entry in one.entries)]
        self._keep(done)
        self._pending = [one for one in self._pending if one not in done]

    def _keep(self, namings: Sequence[Naming]) -> None:
        for naming in namings:
            for folder, name, node in naming.entries:
                if node is None:
                    folder.durable.pop(name, None)
                else:
                    folder.durable[name] = node

    @property
    def _pending_files(self) -> list[File]:
        return [one for one in self._files if one.is_pending]

    def choices(self, rng: random.Random, subsets: int) -> Iterator[Choice]:
        """Yield what may be on disk: nothing, all, each single omission, each name alone, and random *subsets*."""
        files, names = self._pending_files, range(len(self._pending))
        every = frozenset(names)
        none = [(0, dict.fromkeys(one.versions, 0)) for one in files]
        full: list[tuple[int, dict[int, int]]] = [(-1, {}) for _ in files]
        # Sizes without content: zeros.
        empty = [(-1, dict.fromkeys(one.versions, 0)) for one in files]
        yield Choice("everything", every, tuple(full))
        if not files and not every:
            return
        yield Choice("nothing", frozenset(), tuple(none))
        yield Choice("names without content", every, tuple(none))
        yield Choice("names and sizes without content", every, tuple(empty))
        yield Choice("content without names", frozenset(), tuple(full))
        for n in names:
            yield Choice(f"all but {self._pending[n].text}", every - {n}, tuple(full))
            yield Choice(f"nothing but {self._pending[n].text}", frozenset({n}), tuple(full))
        for n, one in enumerate(files):
            for sector in rng.sample(sorted(one.versions), min(2, len(one.versions))):
                lost = (-1, {sector: rng.randrange(len(one.versions[sector]))})
                yield Choice(f"all but sector {sector}", every, (*full[:n], lost, *full[n + 1 :]))
            size = rng.randrange(len(one.sizes))
            yield Choice(f"size {one.sizes[size]}", every, (*full[:n], (size, {}), *full[n + 1 :]))
        for n in range(subsets):
            share = rng.random()
            yield Choice(
                f"random {n}",
                frozenset(one for one in names if rng.random() < share),
                tuple(
                    (
                        rng.randrange(len(one.sizes)),
                        {key: rng.randrange(len(versions)) for key, versions in one.versions.items()},
                    )
                    for one in files
                ),
            )

    def state(self, choice: Choice) -> State:
        """Return the content of the disk after a power failure."""
        content = {id(one): how for one, how in zip(self._pending_files, choice.files, strict=True)}
        entries: dict[int, dict[str, Node]] = {}
        for n, naming in enumerate(self._pending):
            if n in choice.names:
                for folder, name, node in naming.entries:
                    names = entries.setdefault(id(folder), dict(folder.durable))
                    if node is None:
                        names.pop(name, None)
                    else:
                        names[name] = node
        found: State = {}

        def collect(folder: Folder, before: str) -> None:
            for name, node in sorted(entries.get(id(folder), folder.durable).items()):
                if isinstance(node, File):
                    how = content.get(id(node))
                    found[before + name] = node.durable if how is None else node.content(*how)
                else:
                    found[before + name] = None
                    collect(node, f"{before}{name}/")

        assert isinstance(self._root, Folder)
        collect(self._root, "")
        return found


def put(state: State, folder: Path) -> None:
    """Write the content of a disk to *folder*, which is empty."""
    for name, data in state.items():
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)
