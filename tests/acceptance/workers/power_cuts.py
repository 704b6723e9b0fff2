"""Simulate power cuts at random points of a recorded run; report what the disk then holds.

    power_cuts.py REPORT LOG FOLDER IMAGES SEED

An image is what a disk may hold after a cut: everything that was synced; of the rest any
part, in any order, torn at sectors.
"""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path

from reporting import Report

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.upkeep.health import examine

SECTOR_BYTES = 512
STORE_EVERY = 25

report = Report()
log_path, folder, images, seed = sys.argv[2:6]
log = pickle.loads(Path(log_path).read_bytes())  # noqa: S301 - our own, of a moment ago
image_folder = Path(folder)
rng = random.Random(int(seed))
database = image_folder / "state.db"


def apply(file: bytearray, operation: tuple) -> None:
    if operation[0] == "truncate":
        del file[operation[2] :]
        file.extend(bytes(max(0, operation[2] - len(file))))
        return
    _kind, _name, offset, data = operation
    if len(file) < offset:
        file.extend(bytes(offset - len(file)))
    file[offset : offset + len(data)] = data


def apply_some(file: bytearray, unsynced: list[tuple]) -> None:
    """Apply any part of the unsynced writes, in any order."""
    style = rng.random()
    if style < 0.2:
        return  # none of the writes
    if style < 0.4:
        for operation in unsynced[: rng.randint(0, len(unsynced))]:
            apply(file, operation)  # a prefix of the writes
        return
    rng.shuffle(unsynced)
    for operation in unsynced:
        if rng.random() < 0.5:
            apply(file, operation if operation[0] == "truncate" else torn(operation))


def torn(operation: tuple) -> tuple:
    """The full write, or a range of its sectors."""
    kind, name, offset, data = operation
    if rng.random() < 0.5:
        return operation
    sectors = max(1, -(-len(data) // SECTOR_BYTES))
    first = rng.randrange(sectors) * SECTOR_BYTES
    last = min(len(data), first + rng.randint(1, sectors) * SECTOR_BYTES)
    return kind, name, offset + first, data[first:last]


class Disk:
    """The state of the disk after a part of the recorded run."""

    def __init__(self) -> None:
        self.synced: dict[str, bytearray] = {}
        self.unsynced: dict[str, list[tuple]] = {}
        self.acknowledged: list[str] = []
        self._deleted: dict[str, bytearray] = {}

    def play(self, operation: tuple) -> None:
        kind, name = operation[:2]
        if kind == "acknowledged":
            self.acknowledged.append(name)
        elif kind == "delete":
            removed = self.synced.pop(name, bytearray())
            self._deleted[name] = removed
            self.unsynced.pop(name, None)
        elif kind == "sync":
            file = self.synced.setdefault(name, bytearray())
            for pending in self.unsynced.pop(name, []):
                apply(file, pending)
            self._deleted.clear()  # a later sync of the folder's files carries the deletion
        else:
            self.unsynced.setdefault(name, []).append(operation)

    def write_image(self) -> None:
        for old in image_folder.iterdir():
            old.unlink()
        for name in {"state.db", *self.synced, *self.unsynced, *self._deleted}:
            file = bytearray(self.synced.get(name, b""))
            if name in self._deleted and name not in self.synced and rng.random() < 0.5:
                file = bytearray(self._deleted[name])
            apply_some(file, list(self.unsynced.get(name, [])))
            (image_folder / name).write_bytes(file)


def check_image(acknowledged: list[str]) -> tuple[str, int]:
    """Return 'ok' or the error, and the number of missing acknowledged messages."""
    connection = sqlite3.connect(database)
    try:
        result = connection.execute("PRAGMA integrity_check").fetchall()
        if result != [("ok",)]:
            return str(result[0][0]), 0
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if ("hermes_message",) not in tables:
            return "ok", len(acknowledged)
        rows = connection.execute(
            "SELECT lower(hex(u.uid)) FROM hermes_message u JOIN messages m ON m.id = u.message_id"
        ).fetchall()
        return "ok", len(set(acknowledged) - {row[0] for row in rows})
    except sqlite3.Error as error:
        return str(error), 0
    finally:
        connection.close()


def opens_as_store() -> bool:
    SessionDB(database).close()
    return all(finding.status != "failed" for finding in examine(database))


cuts = sorted(rng.randrange(len(log)) for _ in range(int(images)))
disk, position = Disk(), 0
corrupt, losing, lost, refused = 0, 0, 0, 0
examples: list[str] = []
for number, cut in enumerate(cuts):
    while position <= cut:
        disk.play(log[position])
        position += 1
    disk.write_image()
    outcome, missing = check_image(disk.acknowledged)
    corrupt += outcome != "ok"
    losing += missing > 0
    lost += missing
    if outcome != "ok" and len(examples) < 3:
        examples.append(f"cut {cut}: {outcome}")
    if outcome == "ok" and number % STORE_EVERY == 0 and not opens_as_store():
        refused += 1
report.write("checked", images=len(cuts), corrupt=corrupt, images_losing=losing, lost=lost,
           refused_by_the_store=refused, examples=examples)  # fmt: skip
