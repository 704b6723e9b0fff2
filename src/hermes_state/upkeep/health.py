"""Health checks of a store, each with advice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_core import human_format
from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError
from hermes_state.engine import process_identity
from hermes_state.engine.engine import ENGINES
from hermes_state.engine.sqlite import driver, filesystem, foreign_search, migrator
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.messages import copies
from hermes_state.messages.rows import decode_json
from hermes_state.sessions import index, lineage
from hermes_state.store_settings import StoreSettings, store_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader

    Check = tuple[str, Callable[[Engine], "Result"]]

Status = Literal["ok", "warning", "failed", "skipped"]

STALE_INDEX_ROWS: Final = """
    SELECT i.session_id FROM hermes_session_index i
    WHERE i.shown < 3 AND (
        i.last_message_id <> (SELECT coalesce(max(m.id), 0) FROM messages m
                              WHERE m.session_id = i.session_id)
        OR i.active_count <> (SELECT count(*) FROM messages m
                              WHERE m.session_id = i.session_id AND coalesce(m.active, 1) = 1))
"""
COUNTS_WITH_COPIES: Final = """
    SELECT s.id, s.message_count, s.tool_call_count, i.lifetime_messages, i.lifetime_tool_calls
    FROM sessions s JOIN hermes_session_index i ON i.session_id = s.id
    WHERE s.id IN (SELECT m.session_id FROM hermes_copy c JOIN messages m ON m.id = c.message_id)
"""
RELATED: Final = """
    SELECT i.session_id, i.kind, i.root_id, i.shown FROM hermes_session_index i
    WHERE i.shown < 2 AND i.session_id IN (
        SELECT id FROM sessions WHERE parent_session_id IS NOT NULL
        UNION SELECT parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL)
"""
UNDELIVERED: Final = """
    SELECT count(*) FILTER (WHERE state IN ('waiting', 'delivering')),
           count(*) FILTER (WHERE state = 'dead')
    FROM hermes_boundary
"""


class Result(NamedTuple):
    """The result of a check."""

    status: Status
    detail: str
    advice: str = ""


class HealthFinding(NamedTuple):
    """A check and its result."""

    name: str
    status: Status
    detail: str
    advice: str = ""


def sqlite_copies() -> list[str]:
    """The SQLite libraries mapped into this process."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    names = {
        line.split(maxsplit=5)[5]
        for line in maps.read_text(encoding="utf-8", errors="replace").splitlines()
        if "/" in line and line.split(maxsplit=5)[-1].startswith("/")
    }
    libraries = {
        name
        for name in names
        if "sqlite3" in Path(name).name or "/apsw/" in name or "sqlcipher" in name
    }
    # The interpreter's module only wraps the system library, if that is loaded.
    if any("libsqlite3" in name for name in libraries):
        libraries = {name for name in libraries if "lib-dynload" not in name}
    return sorted(libraries)


def examine(path: Path, *, is_thorough: bool = True) -> list[HealthFinding]:
    """Run all checks on the store at *path*; nothing is changed."""
    is_file = not store_url(path)
    findings = [
        HealthFinding("SQLite", *_sqlite_version()),
        HealthFinding("SQLite copies", *_copies()),
        HealthFinding("file system", *_file_system(path)),
    ]
    if is_file and not path.exists():
        return [*findings, HealthFinding("store", "skipped", f"no history at {path} yet")]
    try:
        engine = ENGINES.acquire(
            path, read_only=True, clock=SystemClock(), settings=StoreSettings()
        )
    except HermesError as error:
        return [*findings, HealthFinding("store", "failed", str(error))]
    try:
        checks = [*(_file_checks(is_thorough=is_thorough) if is_file else DATABASE_CHECKS)]
        for name, check in [*checks, *COMMON_CHECKS]:
            findings.append(_run_check(name, check, engine))
    finally:
        ENGINES.release(engine)
    return findings


def _run_check(name: str, check: Callable[[Engine], Result], engine: Engine) -> HealthFinding:
    try:
        return HealthFinding(name, *check(engine))
    except HermesError as error:
        return HealthFinding(name, "failed", str(error), "restore a backup")


def _sqlite_version() -> Result:
    version = sqlite3.sqlite_version
    if driver.is_safe_version(sqlite3.sqlite_version_info):
        return Result("ok", f"version {version}")
    return Result("failed", f"version {version} can corrupt files", "reinstall")


def _copies() -> Result:
    copies = sqlite_copies()
    if not copies:
        return Result("skipped", "unknown on this system")
    if len(copies) == 1:
        return Result("ok", "one in this process")
    return Result(
        "warning",
        f"{len(copies)} in this process: {', '.join(copies)}",
        "a plugin loads its own SQLite; it must not open the session store with it",
    )


def _file_system(path: Path) -> Result:
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    kind = filesystem.file_system_of(folder)
    if kind in filesystem.UNSAFE_FILE_SYSTEMS:
        return Result("failed", f"{kind} has unreliable locks", "move to a local disk")
    return Result("ok", kind)


def _store(engine: Engine) -> Result:
    count = engine.read(lambda reader: reader.value("SELECT count(*) FROM sessions"))
    version = engine.read(lambda reader: reader.value("SELECT max(version) FROM schema_version"))
    text = f"{engine.path}: {human_format.plural(count, 'session')}, schema {version}"
    missing = engine.columns.missing_names()
    if not missing:
        return Result("ok", text)
    return Result(
        "warning",
        f"{text}; can only be read, missing columns: {', '.join(missing)}",
        "start a current hermes-agent once, or use `hermes sessions export` and `import`",
    )


def _journal_mode(engine: Engine) -> Result:
    mode = engine.read(lambda reader: reader.value("PRAGMA journal_mode"))
    if mode == "wal":
        return Result("ok", "write-ahead log")
    if engine.read(lambda reader: migrator.keeps_journal_mode(reader.connection)):
        text = f"{mode}, as the program that created the file chose"
        return Result("ok", text)
    return Result(
        "warning",
        f"{mode} instead of a write-ahead log",
        "close other programs that have the file open, then start Hermes once",
    )


def _integrity(engine: Engine) -> Result:
    rows = engine.read(lambda reader: reader.rows("PRAGMA quick_check(5)"))
    if rows == [("ok",)]:
        return Result("ok", "OK")
    text = "; ".join(str(row[0]) for row in rows)
    if all("FTS5 table" in str(row[0]) for row in rows):
        return Result(
            "warning",
            f"another program's search index is damaged ({text}); all messages are intact",
            "no action needed: Hermes does not use that index",
        )
    return Result("failed", text, "restore a backup")


def _session_index(engine: Engine) -> Result:
    if not engine.columns.has_own_tables:
        return Result("skipped", "this file has not been opened for writing yet")
    total, indexed = engine.read(index.counts)
    if total != indexed:
        text = f"{indexed} of {total} sessions are indexed"
        return Result("warning", text, "it is built while Hermes runs; no action needed")
    stale = engine.read(lambda reader: [*stale_index_rows(reader), *miscounted(reader)])
    if not stale:
        return Result("ok", f"matches the rows of {human_format.plural(total, 'session')}")
    names = ", ".join(stale[:5])
    return Result("warning", f"is outdated for {names}", "run `hermes doctor --fix`")


def _open_sessions(engine: Engine) -> Result:
    if not engine.columns.has_own_tables:
        return Result("skipped", "owners are unknown for this file")
    count = len(engine.read(process_identity.open_without_participant))
    if not count:
        return Result("ok", "all have a running process")
    verb = "has" if count == 1 else "have"
    return Result(
        "warning",
        f"{human_format.plural(count, 'open session')} {verb} no running process",
        "left by another program or released for later; resuming one is safe",
    )


def _events(engine: Engine) -> Result:
    if not engine.columns.has_own_tables:
        return Result("skipped", "this file has none")
    waiting, dead = engine.read(lambda reader: reader.row(UNDELIVERED)) or (0, 0)
    if dead:
        return Result("warning", f"{dead} could not be delivered")
    return Result("ok", f"{waiting or 0} waiting")


def _spool(engine: Engine) -> Result:
    waiting = sorted((engine.path.parent / "spool").glob(f"{engine.path.name}-*.jsonl"))
    if not waiting:
        return Result("ok", "empty")
    return Result(
        "warning",
        f"{len(waiting)} files are waiting to be stored",
        "start Hermes once to store them",
    )


def _routes(engine: Engine) -> Result:
    session_ids: list[str] = []
    if "gateway_routing" in engine.columns.tables:
        rows = engine.read(lambda reader: reader.rows("SELECT entry_json FROM gateway_routing"))
        session_ids += [str(_entry(text).get("session_id")) for (text,) in rows]
    if engine.columns.has_own_tables:
        rows = engine.read(lambda reader: reader.rows("SELECT session_id FROM hermes_route"))
        session_ids += [str(session_id) for (session_id,) in rows]
    if not session_ids:
        return Result("skipped", "this file has none")
    sql = "SELECT 1 FROM sessions WHERE id = ?"
    lost = [i for i in session_ids if not engine.read(lambda r, i=i: r.value(sql, (i,)))]  # type: ignore[misc]
    if not lost:
        return Result("ok", f"{len(session_ids)} point to a session")
    text = f"{len(lost)} point to no session: {', '.join(lost[:5])}"
    return Result("warning", text, "the next message there starts a new conversation")


def _entry(text: str) -> dict[str, object]:
    entry = decode_json(text)
    return entry if isinstance(entry, dict) else {}


def _search(engine: Engine) -> Result:
    if not engine.search.path.exists():
        return Result("skipped", "not built yet")
    from hermes_state.search import index_builder  # noqa: PLC0415 - loaded at first use

    watermark = engine.search.use(index_builder.read_watermark)
    if watermark is None:
        return Result("warning", "unavailable; searches read all messages")
    newest = engine.read(index_builder.newest_id)
    return Result("ok", f"covers messages up to {watermark} of {newest}")


def _foreign_search(engine: Engine) -> Result:
    kept = foreign_search.kept_entries_path(engine.path)
    if not kept.exists():
        return Result("ok", "no damage was found")
    return Result(
        "warning",
        f"damaged entries of its index were moved to {kept}; all messages are intact",
        "hermes-agent builds its index again; delete the file when you do not need it",
    )


def _database(engine: Engine) -> Result:
    count = engine.read(lambda reader: reader.value("SELECT count(*) FROM sessions"))
    version = engine.read(lambda reader: reader.value("SHOW server_version"))
    sessions = human_format.plural(count, "session")
    return Result("ok", f"{engine.place}: {sessions}, PostgreSQL {version}")


def _pending_search(engine: Engine) -> Result:
    sql = "SELECT count(*) FROM hermes_search_pending"
    pending = engine.read(lambda reader: reader.value(sql))
    text = f"{pending} messages are not indexed yet; searches read them"
    return Result("ok", text if pending else "complete")


NOT_REQUESTED: Final = Result("skipped", "not requested")
DATABASE_CHECKS: Final[tuple[Check, ...]] = (
    ("store", _database),
    ("search index", _pending_search),
)
COMMON_CHECKS: Final[tuple[Check, ...]] = (
    ("session index", _session_index),
    ("open sessions", _open_sessions),
    ("boundary events", _events),
    ("journal", _spool),
    ("routes", _routes),
)


def _file_checks(*, is_thorough: bool) -> tuple[Check, ...]:
    return (
        ("store", _store),
        ("journal mode", _journal_mode),
        (
            "integrity",
            _integrity if is_thorough else lambda _engine: NOT_REQUESTED,
        ),
        ("search index", _search),
        ("other program's search", _foreign_search),
    )


def stale_index_rows(reader: Reader) -> list[str]:
    """Sessions whose index row disagrees with their messages or their lineage."""
    stale = [row[0] for row in reader.rows(STALE_INDEX_ROWS)]
    for session_id, kind, root_id, shown in reader.rows(RELATED):
        position = lineage.position_of(reader, session_id)
        expected = index.LISTED if position.is_listed else index.UNLISTED
        if (kind, root_id, shown) != (position.kind, position.root_id, expected):
            stale.append(session_id)
    return list(dict.fromkeys(stale))


def miscounted(reader: Reader) -> list[str]:
    """Sessions with copies whose numbers of messages and calls are not those of their rows.

    A lifetime has more messages than rows if another program has deleted some.
    """
    if not copies.has_copies(reader):
        return []
    wrong = []
    for session_id, *stored in reader.rows(COUNTS_WITH_COPIES):
        found = copies.count(reader, session_id)
        messages = max(found.own_messages, stored[2] or 0)
        if list(found._replace(own_messages=messages)) != stored:
            wrong.append(session_id)
    return wrong
