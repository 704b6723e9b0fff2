"""Files in a database that several nodes share.

Media of messages, the agent's memory, achievement records, and rules of `hermes permissions`.

A history in a file has none of them here: they are in the home of its machine. Records of
adapters, e.g. encryption keys, are here in both: they change together, in one transaction.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from hermes_core import home_files
from hermes_core.atomic_files import write_atomically
from hermes_core.errors import StoreError
from hermes_core.media_store import REMOTE_PREFIX, MediaStore
from hermes_core.paths import hermes_home, private_folder
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from hermes_state.engine.database import QueryResult
    from hermes_state.engine.transaction import Tx
    from hermes_state.store import SessionDB

MEMORY_PREFIX: Final = "memory/"
RECORD_PREFIX: Final = "platform/"  # records of adapters
ACHIEVEMENTS_PREFIX: Final = "achievements/"
ACHIEVEMENTS_FOLDER: Final = "plugins/hermes-achievements"
UNLOCKS_FILE: Final = f"{ACHIEVEMENTS_PREFIX}state.json"
RULES_NAME: Final = "grants"  # rules of `hermes permissions`
RULES_FILE: Final = "approvals.json"
GET_FILE: Final = "SELECT content FROM hermes_file WHERE name = ?"
PUT_FILE: Final = """
    INSERT INTO hermes_file (name, content, stored_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET content = excluded.content, stored_at = excluded.stored_at
"""
DELETE_FILE: Final = "DELETE FROM hermes_file WHERE name = ?"
GET_FILES: Final = "SELECT name, content FROM hermes_file WHERE substr(name, 1, ?) = ?"
GET_RECORD_ROWS: Final = (
    "SELECT name, content, stored_at FROM hermes_file WHERE substr(name, 1, ?) = ?"
)
DELETE_RECORDS: Final = "DELETE FROM hermes_file WHERE substr(name, 1, ?) = ?"
DELETE_MOVED_FILES: Final = "DELETE FROM hermes_file WHERE substr(name, 1, ?) <> ?"
ADD_FILE: Final = """
    INSERT INTO hermes_file (name, content, stored_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
"""


class FileRepository(Repository):
    """Files by name."""

    def get(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        content = self.engine.read(lambda reader: reader.value(GET_FILE, (name,)))
        return None if content is None else bytes(content)

    def add(self, name: str, content: bytes) -> None:
        """Store a file that never changes, because its name is a hash of its content."""
        self.engine.write(lambda tx: tx.run(ADD_FILE, (name, content, tx.clock.now())))

    def put(self, name: str, content: bytes) -> None:
        """Replace the content of a file."""
        self.engine.write(
            lambda tx: tx.run(PUT_FILE, (name, content, tx.clock.now())), is_conditional=True
        )

    def change(self, name: str, change: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the content by what *change* makes of it, in one transaction."""

        def replace(tx: Tx) -> bytes:
            before = tx.value(GET_FILE, (name,))
            after = change(None if before is None else bytes(before))
            tx.execute(PUT_FILE, (name, after, tx.clock.now()))
            return after

        return self.engine.write(replace)

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        self.engine.write(lambda tx: tx.run(DELETE_FILE, (name,)))

    def with_prefix(self, prefix: str) -> dict[str, bytes]:
        """The files whose names start with a prefix, by the rest of their names."""
        rows = self.engine.read(
            lambda reader: reader.execute(GET_FILES, (len(prefix), prefix)).fetchall()
        )
        return {str(name)[len(prefix) :]: bytes(content) for name, content in rows}

    def change_records(
        self, prefix: str, changes: Mapping[str, bytes | None], guard: tuple[str, bytes] | None
    ) -> bool:
        """Replace and delete files in one transaction, if the one named by *guard* is unchanged.

        Whether they were changed.
        """

        def change(tx: Tx) -> bool:
            if guard is not None:
                current = tx.value(GET_FILE, (prefix + guard[0],))
                if current is None or bytes(current) != guard[1]:
                    return False
            for name, content in changes.items():
                if content is None:
                    tx.run(DELETE_FILE, (prefix + name,))
                else:
                    tx.run(PUT_FILE, (prefix + name, content, tx.clock.now()))
            return True

        return self.engine.write(change)


class AdapterRecords:
    """The records of an adapter, in the database."""

    def __init__(self, files: FileRepository, platform: str) -> None:
        self._files = files
        self._prefix = f"{RECORD_PREFIX}{platform}/"

    def load(self, prefix: str) -> dict[str, bytes]:
        """The records whose names start with a prefix, by the rest of their names."""
        return self._files.with_prefix(self._prefix + prefix)

    def change(
        self,
        prefix: str,
        changes: Mapping[str, bytes | None],
        guard: tuple[str, bytes] | None = None,
    ) -> bool:
        """Store and delete records together; False if the record of *guard* has changed."""
        return self._files.change_records(self._prefix + prefix, changes, guard)


def shared_files(db: SessionDB) -> FileRepository | None:
    """The files in the database; None if the history is a file."""
    return None if db.engine.database.is_file else db.files


def media_of(db: SessionDB) -> MediaStore:
    """The media of messages: in the home, and in the database if nodes share that."""
    return MediaStore(hermes_home() / "media", remote=shared_files(db))


def files_of_home() -> Iterator[tuple[str, Path]]:
    """The files of this home that nodes share, with their names in the database."""
    home = hermes_home()
    names = {}
    for name, category in home_files.files_in(home):
        if category.is_archived and home_files.is_shared(name):
            names[_name_in_database(home / name)] = home / name
    earlier = home / "plugin-data" / PurePosixPath(ACHIEVEMENTS_FOLDER).name / "state.json"
    if UNLOCKS_FILE not in names and earlier.is_file():  # of newer releases of hermes-agent
        names[UNLOCKS_FILE] = earlier
    yield from names.items()


def _name_in_database(path: Path) -> str:
    """The name of a file of this home; the inverse of `path_in_home`."""
    if path == hermes_home() / RULES_FILE:
        return RULES_NAME
    if path.is_relative_to(hermes_home() / "media"):
        return f"{REMOTE_PREFIX}{path.name}"
    return UNLOCKS_FILE if path == path_in_home(UNLOCKS_FILE) else memory_name(path)


def memory_name(path: Path) -> str:
    """The name of a file of the agent's memory in the database."""
    return f"{MEMORY_PREFIX}{path.relative_to(hermes_home()).as_posix()}"


def path_in_home(name: str, home: Path | None = None) -> Path:
    """The path of a file of the database in a home."""
    kind, _, rest = name.partition("/")
    home = home or hermes_home()
    path = home / rest
    if name == RULES_NAME:
        path = home / RULES_FILE
    elif kind == "media":
        path = home / "media" / rest[:2] / rest
    elif name.startswith(ACHIEVEMENTS_PREFIX):
        path = home / ACHIEVEMENTS_FOLDER / rest
    if not path.resolve().is_relative_to(home.resolve()):
        raise StoreError(f"the database has a file with an invalid name: {name}")
    return path


def upload_files(write: Callable[[Callable[[Tx], None]], object]) -> int:
    """Store the files of this home in a database; how many. Those that it has are kept."""
    count = 0
    for name, path in files_of_home():
        content = path.read_bytes()
        write(lambda tx: tx.run(ADD_FILE, (name, content, tx.clock.now())))  # noqa: B023 - run now
        count += 1
    return count


def unpack(
    execute: Callable[..., QueryResult], home: Path | None = None, *, with_rules: bool = False
) -> int:
    """Move media, memory and unlocks from a file's tables to a home; how many files changed.

    A history in a file does not use them: its home has these files. Rules of permissions are
    moved only *with_rules*: they allow commands.
    """
    moved = {UNLOCKS_FILE, RULES_NAME} if with_rules else {UNLOCKS_FILE}
    count = 0
    names = [row[0] for row in execute("SELECT name FROM hermes_file").fetchall()]
    for name in names:
        if not name.startswith((REMOTE_PREFIX, MEMORY_PREFIX)) and name not in moved:
            continue
        path = path_in_home(name, home)
        content = bytes(execute(GET_FILE, (name,)).fetchone()[0])
        if not path.exists() or path.read_bytes() != content:
            private_folder(path.parent)
            write_atomically(path, content)
            count += 1
    execute(DELETE_MOVED_FILES, (len(RECORD_PREFIX), RECORD_PREFIX))
    return count
