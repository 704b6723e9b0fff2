"""A private PostgreSQL server for tests: Debian's programs, a Unix socket, an ordinary user."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import psycopg
import pytest

from hermes_core.clock import SystemClock
from hermes_state.engine.engine import open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path("/usr/lib/postgresql")
FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
# `make test-engines` runs tests on histories in PostgreSQL instead of files.
IS_ON_POSTGRES = os.environ.get("HERMES_TEST_ENGINE") == "postgresql"
TEMPLATE = "prepared"
IS_PREPARED = "SELECT 1 FROM pg_database WHERE datname = %s"
_numbers = itertools.count(1)


class PostgresServer(NamedTuple):
    """A running server."""

    folder: Path
    is_durable: bool

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql:///postgres?host={quote(str(self.folder), safe='')}&user=hermes"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=200"
        if not self.is_durable:
            options += f" {FAST}"
        _run("pg_ctl", "-D", self._data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is a crash."""
        _run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    @contextlib.contextmanager
    def history(self) -> Iterator[str]:
        """The URL of an empty schema, which is dropped afterwards."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        yield f"{self.url}&options={quote(f'-c search_path={name}', safe='')}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE")

    @contextlib.contextmanager
    def prepared_history(self) -> Iterator[str]:
        """The URL of a history without conversations, in a database that is dropped afterwards.

        It is a copy of one that is created once: to create its tables takes twice as long.
        """
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            if connection.execute(IS_PREPARED, (TEMPLATE,)).fetchone() is None:
                self._prepare(connection)
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")
        yield self._url_of(name)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} (FORCE)")

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HERMES_HOME", str(self.folder))  # no settings
            with contextlib.closing(
                open_database(self._url_of(TEMPLATE), read_only=False)
            ) as database:
                database.open_writer(SystemClock()).close()

    def _url_of(self, database: str) -> str:
        return self.url.replace("/postgres?", f"/{database}?")

    @property
    def _data(self) -> Path:
        return self.folder / "data"


@contextlib.contextmanager
def running_postgres(*, is_durable: bool = False) -> Iterator[PostgresServer]:
    """A new server in a folder of its own; the test is skipped where PostgreSQL is missing."""
    if _programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian package postgresql)")
    # In memory where that is possible: each test creates and drops a hundred files.
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and not is_durable else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="hermes-pg-", dir=place))
    if _user():
        shutil.chown(folder, _user())
    server = PostgresServer(folder, is_durable)
    try:
        _run(
            "initdb", "-D", folder / "data", "-U", "hermes", "-A", "trust", "--no-sync",
            "--locale=C.UTF-8", "-E", "UTF8",
        )  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of the newest installed release."""
    folders = sorted(PROGRAMS.glob("*/bin"), key=lambda path: int(path.parent.name))
    return folders[-1] if folders else None


def _user() -> str | None:
    """The user that runs the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _run(program: str, *arguments: Any) -> None:
    folder = _programs()
    assert folder is not None
    done = subprocess.run(
        [folder / program, *map(str, arguments)],
        user=_user(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
        stderr=subprocess.STDOUT if program == "initdb" else subprocess.DEVNULL,
        check=False,
        text=True,
    )
    assert done.returncode == 0, f"{program} failed: {done.stdout}"
