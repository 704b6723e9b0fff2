"""A connection to PostgreSQL with the interface of the store."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_core.backoff import Backoff
from hermes_core.errors import ConfigError
from hermes_core.isolate import attempt
from hermes_state.engine.postgres import dialect
from hermes_state.engine.postgres.errors import PostgresError, translate, translated
from hermes_state.messages.rows import JSON_PREFIX, PORTABLE_JSON_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_state.engine.database import Row

CONNECT_SECONDS: Final = 5
# A frozen peer is noticed by the operating system, a slow statement is not cut.
KEEP_ALIVE: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


class _BoolDumper(Dumper):
    """Columns for statements are integers, as in SQLite."""

    oid = psycopg.postgres.types["int2"].oid

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


class _NumericLoader(Loader):
    """Sums of integers are integers, not decimals."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def open_connection(url: str, application: str) -> psycopg.Connection[Row]:
    """Connect; each statement is a transaction unless one was begun."""
    with translated():
        connection = psycopg.connect(
            make_conninfo(
                url, application_name=application, connect_timeout=CONNECT_SECONDS, **KEEP_ALIVE
            ),
            autocommit=True,
        )
    connection.adapters.register_dumper(bool, _BoolDumper)
    connection.adapters.register_loader("numeric", _NumericLoader)
    return connection


def with_password(url: str, password: str) -> str:
    """The URL with the password, unless it has one."""
    try:
        if not password or conninfo_to_dict(url).get("password"):
            return url
        return make_conninfo(url, password=password)
    except psycopg.Error as error:
        raise ConfigError(f"store.url cannot be used: {error}") from error


def storable(value: Any) -> Any:
    """A parameter that PostgreSQL can store: its texts have no zero character.

    Content with zero characters is stored as JSON (`messages.rows`), which has one in its
    prefix; in other columns they are escaped.
    """
    if type(value) is str and "\0" in value:
        if value.startswith(JSON_PREFIX):
            value = PORTABLE_JSON_PREFIX + value[len(JSON_PREFIX) :]
        return value.replace("\0", "\\x00")
    return value


class PostgresCursor:
    """The result of a statement."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """Number of changed rows."""
        return self._cursor.rowcount

    @property
    def description(self) -> Any:
        """One tuple per column; its name comes first."""
        return self._cursor.description

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """The remaining rows."""
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class PostgresConnection:
    """A connection that one thread uses at a time."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.raw = connection
        self.name = os.urandom(8).hex()
        self.transactions = 0
        self.is_writing = False  # in a transaction whose statements have plans of their own

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> PostgresCursor:
        """Run a statement; `?` stands for a parameter."""
        values = [storable(value) for value in parameters]
        try:
            # A prepared statement gets one plan for all parameters after a while.
            prepare = False if dialect.PLAN_EACH_TIME in sql else None
            return PostgresCursor(self.raw.execute(self._text(sql), values, prepare=prepare))
        except psycopg.Error as error:
            raise translate(error) from error

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> PostgresCursor:
        """Run a statement once for each set of parameters."""
        values = [[storable(value) for value in each] for each in parameters]
        with translated():
            cursor = self.raw.cursor()
            cursor.executemany(self._text(sql), values)
            return PostgresCursor(cursor)

    def _text(self, sql: str) -> str:
        """A statement; one that writes does not share a prepared one, and its plan, with reads."""
        text = dialect.statement(sql)
        return f"{text} /* write */" if self.is_writing else text

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open and outside a transaction."""
        status = self.raw.info.transaction_status
        return not self.raw.closed and status == psycopg.pq.TransactionStatus.IDLE

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


MAX_IDLE_CONNECTIONS: Final = 8


class ConnectionPool:
    """Opens a connection when none is idle."""

    def __init__(self, connect: Callable[[], PostgresConnection]) -> None:
        self._connect = connect
        self._idle: deque[PostgresConnection] = deque()
        self._is_closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[PostgresConnection]:
        """Borrow a connection; one that is broken or in a transaction is closed afterwards."""
        connection = self._take()
        try:
            yield connection
        finally:
            is_kept = connection.is_usable and len(self._idle) < MAX_IDLE_CONNECTIONS
            if is_kept and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()

    def _take(self) -> PostgresConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def discard_idle(self) -> None:
        """Close idle connections, for example after the server was restarted."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread may take the last one
                self._idle.pop().close()

    def close(self) -> None:
        """Close idle connections; those in use are closed when they are returned."""
        self._is_closed = True
        self.discard_idle()


log = logging.getLogger(__name__)

RECONNECT_BACKOFF: Final = Backoff(0.5, 30.0)
CHECK_SECONDS: Final = 0.5  # how soon the thread notices that it has to stop
NOTIFY: Final = "SELECT pg_notify(current_schema() || '.hermes', ?)"
# The name of a channel cannot be a parameter.
LISTEN: Final = "SELECT 'LISTEN ' || quote_ident(current_schema() || '.hermes')"


class Listener:
    """A thread that passes the topic of each notification to *on_wake*."""

    def __init__(self, url: str, on_wake: Callable[[str], object]) -> None:
        self._url = url
        self._on_wake = on_wake
        self._is_stopping = threading.Event()
        threading.Thread(target=self._run, name="hermes-listener", daemon=True).start()

    def stop(self) -> None:
        """Stop soon."""
        self._is_stopping.set()

    def _run(self) -> None:
        attempts = 0
        while not self._is_stopping.is_set():
            try:
                with open_connection(self._url, "hermes (notifications)") as connection:
                    self._listen(connection)
                attempts = 0
            except (psycopg.Error, PostgresError) as error:
                attempts += 1
                log.debug("database notifications lost: %s", error)
                self._is_stopping.wait(RECONNECT_BACKOFF.delay(attempts))

    def _listen(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        row = connection.execute(LISTEN).fetchone()
        connection.execute(str(row[0] if row else "").encode())
        while not self._is_stopping.is_set():
            for notification in connection.notifies(timeout=CHECK_SECONDS):
                topic = notification.payload
                attempt("wake after a notification", lambda: self._on_wake(topic))  # noqa: B023
