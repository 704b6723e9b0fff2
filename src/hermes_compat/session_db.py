"""The store under the names of hermes-agent's SessionDB, for its plugins."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, Final, NoReturn, ParamSpec, TypeAlias, TypeVar

from hermes_core.messages import sanitize_title
from hermes_state.delivery.handoffs import HandoffRepository
from hermes_state.delivery.leases import CompressionLockRepository
from hermes_state.messages import rows as message_rows
from hermes_state.messages.edits import EditRepository
from hermes_state.messages.history import ExportRepository, MessageRepository
from hermes_state.repository import MetaRepository
from hermes_state.search.repository import SearchRepository
from hermes_state.sessions import records
from hermes_state.sessions.labels import TitleRepository
from hermes_state.sessions.lists import ListRepository
from hermes_state.sessions.lookup import LookupRepository
from hermes_state.sessions.retention import RetentionRepository
from hermes_state.sessions.rows import SessionRepository
from hermes_state.sessions.trash import TrashRepository
from hermes_state.sessions.usage import UsageRepository
from hermes_state.store import SessionDB
from hermes_state.upkeep.statistics import StatisticsRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_state.delivery.handoffs import Handoff
    from hermes_state.engine.transaction import Columns
    from hermes_state.messages.edits import Rewind
    from hermes_state.messages.history import (
        AnchoredView,
        ExportedSession,
        MessageWindow,
        RecentPrompt,
    )
    from hermes_state.messages.rows import MessageRow
    from hermes_state.repository import Repository
    from hermes_state.search.hits import FoundMessage, FoundMessageDict
    from hermes_state.sessions.records import ListedSession, SessionRow
    from hermes_state.sessions.retention import HouseKeeping
    from hermes_state.sessions.usage import UsageTotals

RowDict: TypeAlias = "dict[str, object]"

LIST_FIELDS: Final = ("preview", "last_active", "kind", "unread")


def session_dict(columns: Columns, session: SessionRow | None) -> RowDict | None:
    """All columns of a session."""
    return None if session is None else records.by_column(columns, session)


def session_dicts(columns: Columns, sessions: Iterable[SessionRow]) -> list[RowDict]:
    """All columns of sessions."""
    return [records.by_column(columns, session) for session in sessions]


def listed_dicts(columns: Columns, rows: Iterable[ListedSession]) -> list[RowDict]:
    """The rows of a list, without the system prompt."""
    names = (*records.COLUMNS, *records.other_columns(columns), *LIST_FIELDS)
    return [_listed(names, row) for row in rows]


def _listed(names: tuple[str, ...], row: ListedSession) -> RowDict:
    session, preview, last_active, root_id, kind, unread = row
    # One tuple and one dictionary per row, because lists are long.
    values = session[:-1] + session.others + (preview, last_active, kind, unread)
    listed: RowDict = dict(zip(names, values, strict=True))
    del listed["system_prompt"]
    if root_id != session.id:
        listed["_lineage_root_id"] = root_id
    return listed


def message_dicts(columns: Columns, messages: Iterable[MessageRow]) -> list[RowDict]:
    """Message rows."""
    return [message_rows.by_column(columns, message) for message in messages]


def export_dict(columns: Columns, export: ExportedSession | None) -> RowDict | None:
    """A session with its messages."""
    return None if export is None else _export(columns, export)


def export_dicts(columns: Columns, exports: Iterable[ExportedSession]) -> list[RowDict]:
    """Sessions with their messages."""
    return [_export(columns, export) for export in exports]


def _export(columns: Columns, export: ExportedSession) -> RowDict:
    messages = message_dicts(columns, export.messages)
    return {**records.by_column(columns, export.session), "messages": messages}


def hit_dicts(_columns: Columns, hits: Iterable[FoundMessage]) -> list[FoundMessageDict]:
    """Search results."""
    return [hit.as_dict() for hit in hits]


def prompt_dicts(_columns: Columns, prompts: Iterable[RecentPrompt]) -> list[RowDict]:
    """The latest user messages."""
    return [prompt._asdict() for prompt in prompts]


def window_dict(columns: Columns, view: MessageWindow) -> RowDict:
    """Rows around a message."""
    return {
        "window": message_dicts(columns, view.window),
        "messages_before": view.messages_before,
        "messages_after": view.messages_after,
    }


def view_dict(columns: Columns, view: AnchoredView) -> RowDict:
    """Rows around a message, with the first and last rows of the session."""
    return {
        **window_dict(columns, view.around),
        "bookend_start": message_dicts(columns, view.bookend_start),
        "bookend_end": message_dicts(columns, view.bookend_end),
    }


def rewind_dict(columns: Columns, rewind: Rewind) -> RowDict:
    """The result of a rewind."""
    return {
        "rewound_count": rewind.rewound_count,
        "target_message": message_dicts(columns, [rewind.target_message])[0],
        "new_head_id": rewind.new_head_id,
    }


def handoff_dict(_columns: Columns, handoff: Handoff | None) -> RowDict | None:
    """The state of a hand-off."""
    return None if handoff is None else handoff._asdict()


def house_keeping_dict(_columns: Columns, done: HouseKeeping) -> RowDict:
    """What was done to keep the history small; the file is never vacuumed without asking."""
    return {
        "skipped": done.is_skipped,
        "pruned": done.pruned,
        "purged": done.purged,
        "vacuumed": False,
    }


def usage_dict(_columns: Columns, totals: UsageTotals) -> RowDict:
    """Totals over all sessions."""
    return totals._asdict()


# Names of hermes-agent's methods for topics of direct chats on Telegram.
TOPIC_NAME: Final = "telegram_topic"
TOPICS: Final = (
    ": topics of Telegram are not stored by the session store; each topic is a place of its own, "
    "and SessionStore (gateway.session) has its conversation"
)
P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
AnyRepository = TypeVar("AnyRepository", bound="Repository")


def method_of(
    attribute: str, method: Callable[Concatenate[AnyRepository, P], R]
) -> Callable[Concatenate[OriginalSessionDB, P], R]:
    """A method of the store that calls the method of one of its repositories."""

    @functools.wraps(method)
    def call(self: OriginalSessionDB, /, *arguments: P.args, **options: P.kwargs) -> R:
        return method(getattr(self, attribute), *arguments, **options)

    return call


def dicts_of(
    attribute: str,
    method: Callable[Concatenate[AnyRepository, P], R],
    convert: Callable[[Columns, R], D],
) -> Callable[Concatenate[OriginalSessionDB, P], D]:
    """Like `method_of`; the rows are returned as hermes-agent's dictionaries."""

    @functools.wraps(method)
    def call(self: OriginalSessionDB, /, *arguments: P.args, **options: P.kwargs) -> D:
        repository = getattr(self, attribute)
        return convert(self.engine.columns, method(repository, *arguments, **options))

    return call


class OriginalSessionDB(SessionDB):
    """A store whose methods also have the names that hermes-agent gave them."""

    sanitize_title = staticmethod(sanitize_title)

    if not TYPE_CHECKING:  # for type checkers, a missing name stays an error

        def __getattr__(self, name: str) -> NoReturn:
            """The reason why a name of hermes-agent is missing; `hasattr` is false."""
            reason = TOPICS if TOPIC_NAME in name else ""
            raise AttributeError(f"SessionDB has no {name}{reason}", name=name, obj=self)

    create_session = method_of("sessions", SessionRepository.create_session)
    ensure_session = method_of("sessions", SessionRepository.ensure_session)
    end_session = method_of("sessions", SessionRepository.end_session)
    reopen_session = method_of("sessions", SessionRepository.reopen_session)

    def get_session(self, session_id: str) -> RowDict | None:
        """All columns of a session, or None; one in the trash also has `trashed_at`."""
        found = session_dict(self.engine.columns, self.sessions.find(session_id))
        trashed_at = None if found is None else self.trash.trashed_at(session_id)
        if found is not None and trashed_at is not None:
            found["trashed_at"] = trashed_at
        return found

    set_session_archived = method_of("sessions", SessionRepository.set_session_archived)
    set_session_pinned = method_of("sessions", SessionRepository.set_session_pinned)
    update_session_model = method_of("sessions", SessionRepository.update_session_model)
    update_session_cwd = method_of("sessions", SessionRepository.update_session_cwd)
    update_system_prompt = method_of("sessions", SessionRepository.update_system_prompt)
    mark_session_read = method_of("sessions", SessionRepository.mark_session_read)
    update_session_meta = method_of("sessions", SessionRepository.update_session_meta)
    message_count = method_of("sessions", SessionRepository.message_count)

    append_message = method_of("messages", MessageRepository.append_message)
    append_messages_batch = method_of("messages", MessageRepository.append_messages_batch)
    get_messages = dicts_of("messages", MessageRepository.rows, message_dicts)
    get_messages_as_conversation = method_of(
        "messages", MessageRepository.get_messages_as_conversation
    )
    list_recent_user_messages = dicts_of("messages", MessageRepository.recent_prompts, prompt_dicts)
    get_messages_around = dicts_of("messages", MessageRepository.around, window_dict)
    get_anchored_view = dicts_of("messages", MessageRepository.anchored_view, view_dict)

    rewind_to_message = dicts_of("edits", EditRepository.rewind, rewind_dict)
    restore_rewound = method_of("edits", EditRepository.restore_rewound)
    archive_and_compact = method_of("edits", EditRepository.archive_and_compact)
    replace_messages = method_of("edits", EditRepository.replace_messages)
    clear_messages = method_of("edits", EditRepository.clear_messages)

    list_sessions_rich = dicts_of("lists", ListRepository.sessions, listed_dicts)
    search_sessions = dicts_of("lists", ListRepository.search_sessions, listed_dicts)
    search_sessions_by_id = dicts_of("lists", ListRepository.search_sessions_by_id, listed_dicts)
    session_count = method_of("lists", ListRepository.session_count)

    def list_cron_job_runs(self, job_id: str, limit: int = 20, offset: int = 0) -> list[RowDict]:
        """The sessions of the runs of a job of hermes-agent, the newest first."""
        runs = self.lists.sessions(
            limit=limit, offset=offset, sources=["cron"], id_query=f"cron_{job_id}_"
        )
        return listed_dicts(self.engine.columns, runs)

    search_messages = dicts_of("search", SearchRepository.find, hit_dicts)

    resolve_session_id = method_of("lookup", LookupRepository.resolve_session_id)

    set_session_title = method_of("titles", TitleRepository.set_session_title)
    get_session_title = method_of("titles", TitleRepository.get_session_title)
    get_session_by_title = dicts_of("titles", TitleRepository.find, session_dict)
    resolve_session_by_title = method_of("titles", TitleRepository.resolve_session_by_title)
    get_next_title_in_lineage = method_of("titles", TitleRepository.get_next_title_in_lineage)
    get_compression_tip = method_of("titles", TitleRepository.get_compression_tip)
    resolve_resume_session_id = method_of("titles", TitleRepository.resolve_resume_session_id)

    update_token_counts = method_of("usage", UsageRepository.update_token_counts)
    record_auxiliary_usage = method_of("usage", UsageRepository.record_auxiliary_usage)
    usage_totals = dicts_of("usage", UsageRepository.totals, usage_dict)

    delete_session = method_of("trash", TrashRepository.delete_session)
    delete_sessions = method_of("trash", TrashRepository.delete_sessions)
    set_session_hidden = method_of("trash", TrashRepository.set_session_hidden)

    prune_sessions = method_of("retention", RetentionRepository.prune_sessions)
    count_empty_sessions = method_of("retention", RetentionRepository.count_empty_sessions)
    delete_empty_sessions = method_of("retention", RetentionRepository.delete_empty_sessions)
    delete_session_if_empty = method_of("retention", RetentionRepository.delete_session_if_empty)
    prune_empty_ghost_sessions = method_of(
        "retention", RetentionRepository.prune_empty_ghost_sessions
    )
    finalize_orphaned_compression_sessions = method_of(
        "retention", RetentionRepository.finalize_orphaned_compression_sessions
    )

    def maybe_auto_prune_and_vacuum(self, /, **_ignored: object) -> RowDict:
        """Once a day: purge and prune old sessions, whatever the arguments; never vacuums."""
        return house_keeping_dict(self.engine.columns, self.retention.keep_house())

    export_session = dicts_of("exports", ExportRepository.session, export_dict)
    export_session_lineage = dicts_of("exports", ExportRepository.conversation, export_dicts)
    export_all = dicts_of("exports", ExportRepository.iter_exports, export_dicts)

    get_meta = method_of("meta", MetaRepository.get_meta)
    set_meta = method_of("meta", MetaRepository.set_meta)

    try_acquire_compression_lock = method_of(
        "compression_locks", CompressionLockRepository.try_acquire_compression_lock
    )
    release_compression_lock = method_of(
        "compression_locks", CompressionLockRepository.release_compression_lock
    )
    get_compression_lock_holder = method_of(
        "compression_locks", CompressionLockRepository.get_compression_lock_holder
    )

    request_handoff = method_of("handoffs", HandoffRepository.request_handoff)
    claim_handoff = method_of("handoffs", HandoffRepository.claim_handoff)
    complete_handoff = method_of("handoffs", HandoffRepository.complete_handoff)
    fail_handoff = method_of("handoffs", HandoffRepository.fail_handoff)
    get_handoff_state = dicts_of("handoffs", HandoffRepository.find, handoff_dict)
    list_pending_handoffs = dicts_of("handoffs", HandoffRepository.pending, session_dicts)

    session_count_by_source = method_of("statistics", StatisticsRepository.session_count_by_source)
    vacuum = method_of("statistics", StatisticsRepository.vacuum)
    optimize_fts = method_of("statistics", StatisticsRepository.optimize_fts)
