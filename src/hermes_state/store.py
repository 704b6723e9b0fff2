"""SessionDB: the session store as programs and plugins use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_core.isolate import Step, run_all
from hermes_core.log import get_logger
from hermes_state.engine import process_identity
from hermes_state.engine.engine import ENGINES
from hermes_state.repository import Lazy, OriginalNamesOnUse, StoreContext
from hermes_state.sessions import index
from hermes_state.sessions.lists import ListRepository, refresh_index
from hermes_state.store_settings import StoreSettings
from hermes_state.upkeep.background_jobs import BackgroundJobs

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from hermes_core.clock import Clock
    from hermes_state.delivery.api_requests import ApiRequestRepository
    from hermes_state.delivery.boundaries import BoundaryRepository
    from hermes_state.delivery.chats import ChatRepository
    from hermes_state.delivery.compression_locks import CompressionLockRepository
    from hermes_state.delivery.handoffs import HandoffRepository
    from hermes_state.delivery.inbox import InboxRepository
    from hermes_state.delivery.leases import LeaseRepository
    from hermes_state.delivery.nodes import NodeRepository
    from hermes_state.delivery.open_questions import OpenQuestionRepository
    from hermes_state.delivery.outbox import OutboxRepository
    from hermes_state.delivery.pairings import PairingRepository
    from hermes_state.delivery.paused_places import PausedPlaceRepository
    from hermes_state.delivery.people import PeopleRepository
    from hermes_state.delivery.routes import RouteRepository
    from hermes_state.facade import OriginalNames
    from hermes_state.files import FileRepository
    from hermes_state.imports.repository import ImportRepository
    from hermes_state.ledger.repository import LedgerRepository
    from hermes_state.messages.edits import EditRepository
    from hermes_state.messages.feed import FeedRepository
    from hermes_state.messages.history import ExportRepository, MessageRepository
    from hermes_state.messages.pages import TranscriptRepository
    from hermes_state.portable.repository import PortableRepository
    from hermes_state.repository import PurgeHook
    from hermes_state.schedules.repository import ScheduleRepository
    from hermes_state.search.repository import SearchRepository
    from hermes_state.sessions.facets import FacetRepository
    from hermes_state.sessions.labels import TagRepository, TitleRepository
    from hermes_state.sessions.lookup import LookupRepository
    from hermes_state.sessions.pages import PageRepository
    from hermes_state.sessions.retention import RetentionRepository
    from hermes_state.sessions.rows import SessionRepository
    from hermes_state.sessions.sort_values import SortRepository
    from hermes_state.sessions.totals import TotalsRepository
    from hermes_state.sessions.trash import TrashRepository
    from hermes_state.sessions.usage import UsageRepository
    from hermes_state.upkeep.meta import MetaRepository
    from hermes_state.upkeep.statistics import StatisticsRepository
else:
    OriginalNames = OriginalNamesOnUse

log = get_logger(__name__)


class SessionDB(OriginalNames):
    """All conversations, in one file.

    `SessionDB()` opens the user's store. Instances are cheap: all instances of a file share
    one writing connection. Methods may be called from any thread; a method that changes
    data returns when the change is on disk.

    Each attribute is a repository for one kind of row, such as `db.inbox` and `db.leases`.
    The methods that hermes-agent has too can also be called on the store itself.
    """

    # Loaded at first use: short commands do without them.
    inbox: Lazy[InboxRepository] = Lazy("delivery.inbox", "InboxRepository")
    outbox: Lazy[OutboxRepository] = Lazy("delivery.outbox", "OutboxRepository")
    routes: Lazy[RouteRepository] = Lazy("delivery.routes", "RouteRepository")
    pairings: Lazy[PairingRepository] = Lazy("delivery.pairings", "PairingRepository")
    people: Lazy[PeopleRepository] = Lazy("delivery.people", "PeopleRepository")
    chats: Lazy[ChatRepository] = Lazy("delivery.chats", "ChatRepository")
    api_requests: Lazy[ApiRequestRepository] = Lazy("delivery.api_requests", "ApiRequestRepository")
    open_questions: Lazy[OpenQuestionRepository] = Lazy(
        "delivery.open_questions", "OpenQuestionRepository"
    )
    feed: Lazy[FeedRepository] = Lazy("messages.feed", "FeedRepository")
    nodes: Lazy[NodeRepository] = Lazy("delivery.nodes", "NodeRepository")
    paused_places: Lazy[PausedPlaceRepository] = Lazy(
        "delivery.paused_places", "PausedPlaceRepository"
    )
    schedules: Lazy[ScheduleRepository] = Lazy("schedules.repository", "ScheduleRepository")
    imports: Lazy[ImportRepository] = Lazy("imports.repository", "ImportRepository")
    files: Lazy[FileRepository] = Lazy("files", "FileRepository")
    facets: Lazy[FacetRepository] = Lazy("sessions.facets", "FacetRepository")
    pages: Lazy[PageRepository] = Lazy("sessions.pages", "PageRepository")
    sort_values: Lazy[SortRepository] = Lazy("sessions.sort_values", "SortRepository")
    totals: Lazy[TotalsRepository] = Lazy("sessions.totals", "TotalsRepository")
    transcripts: Lazy[TranscriptRepository] = Lazy("messages.pages", "TranscriptRepository")

    sessions: Lazy[SessionRepository] = Lazy("sessions.rows", "SessionRepository")
    tags: Lazy[TagRepository] = Lazy("sessions.labels", "TagRepository")
    titles: Lazy[TitleRepository] = Lazy("sessions.labels", "TitleRepository")
    lookup: Lazy[LookupRepository] = Lazy("sessions.lookup", "LookupRepository")
    usage: Lazy[UsageRepository] = Lazy("sessions.usage", "UsageRepository")
    ledger: Lazy[LedgerRepository] = Lazy("ledger.repository", "LedgerRepository")
    trash: Lazy[TrashRepository] = Lazy("sessions.trash", "TrashRepository", "ledger")
    meta: Lazy[MetaRepository] = Lazy("upkeep.meta", "MetaRepository")
    retention: Lazy[RetentionRepository] = Lazy(
        "sessions.retention", "RetentionRepository", "trash", "meta"
    )
    messages: Lazy[MessageRepository] = Lazy("messages.history", "MessageRepository")
    edits: Lazy[EditRepository] = Lazy("messages.edits", "EditRepository")
    exports: Lazy[ExportRepository] = Lazy(
        "messages.history", "ExportRepository", "messages", "lists"
    )
    portable: Lazy[PortableRepository] = Lazy("portable.repository", "PortableRepository", "lists")
    search: Lazy[SearchRepository] = Lazy("search.repository", "SearchRepository")
    statistics: Lazy[StatisticsRepository] = Lazy("upkeep.statistics", "StatisticsRepository")
    leases: Lazy[LeaseRepository] = Lazy("delivery.leases", "LeaseRepository")
    boundaries: Lazy[BoundaryRepository] = Lazy("delivery.boundaries", "BoundaryRepository")
    handoffs: Lazy[HandoffRepository] = Lazy("delivery.handoffs", "HandoffRepository")
    compression_locks: Lazy[CompressionLockRepository] = Lazy(
        "delivery.compression_locks", "CompressionLockRepository"
    )

    def __init__(
        self,
        db_path: str | Path | None = None,
        read_only: bool = False,
        *,
        clock: Clock | None = None,
        settings: StoreSettings | None = None,
        busy_seconds: float | None = None,
        is_recovering: bool = True,
        purge_hook: PurgeHook | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        settings = settings or StoreSettings.of_home()
        if busy_seconds is not None:
            settings = settings._replace(busy_seconds=busy_seconds)
        self.engine = ENGINES.acquire(
            Path(db_path) if db_path is not None else paths.state_db_path(),
            read_only=read_only,
            clock=self.clock,
            settings=settings,
        )
        self.clock = self.engine.database.clock or self.clock
        self.db_path = self.engine.path
        self.ids = MessageIds(self.clock)
        self.identity = ENGINES.identity
        self.journal = self.engine.journal
        self.context = StoreContext(self.engine, self.clock, self.ids, self.identity, purge_hook)
        self.lists = ListRepository(self.context)
        self._background = BackgroundJobs(self.engine, self._keep_house)
        self._is_open = True
        if not read_only and is_recovering:
            self._recover()

    def _recover(self) -> None:
        """Recover the data of dead processes, and index what other programs wrote."""
        run_all(
            [
                Step("replay the journal", lambda: self.journal.replay_orphans(self.engine)),
                Step("sweep after crashes", self.sweep),
                Step("index what other programs wrote", self._start_background),
            ]
        )

    def needs_recovery(self) -> bool:
        """Whether crashed processes or other programs left rows to be settled or indexed."""
        if not self.engine.columns.has_own_tables:
            return False
        dead = self.engine.read(
            lambda reader: process_identity.dead_processes(reader, self.identity, self.clock)
        )
        return bool(dead) or self.journal.has_others() or self.engine.read(index.is_stale)

    def _keep_house(self) -> None:
        """Once a day: repair what other programs changed without messages, and keep house."""
        if self.retention.is_house_keeping_due():
            self.statistics.repair_index()
            self.retention.keep_house()

    def _start_background(self) -> None:
        refresh_index(self.engine)
        self._background.start(is_due=self.retention.is_house_keeping_due())

    def sweep(self) -> list[str]:
        """Settle what dead processes left; returns the conversations that were ended."""
        from hermes_state.upkeep.crash_recovery import sweep  # noqa: PLC0415 - readers do without

        return sweep(self.engine, self.identity, self.ids)

    def index_progress(self) -> tuple[int, int] | None:
        """Number of indexed sessions and of all sessions; None when the index is complete."""
        if not self.engine.columns.has_own_tables:
            return (0, self.engine.read(lambda r: r.value("SELECT count(*) FROM sessions")))
        return self._background.progress()

    def wait_for_index(self, seconds: float) -> bool:
        """Wait while the index is built in the background; returns whether it is complete."""
        return self._background.wait(seconds)

    def trouble(self) -> str | None:
        """Message for the user if messages are waiting in the journal, otherwise None."""
        if not self.journal.waiting:
            return None
        return (
            f"{self.journal.waiting} messages are kept in the journal because the database "
            "rejects them; they will be stored when it recovers"
        )

    def close(self) -> None:
        """Release the store; the last user in the process closes the file."""
        if not self._is_open:
            return
        self._is_open = False
        self._background.stop()
        steps: list[Step] = []
        if not self.engine.read_only and self.engine.has_written:
            steps.insert(0, Step("write the index watermark", self._write_watermark))
        if self.journal.waiting:
            steps.insert(0, Step("store the journal", lambda: self.journal.replay(self.engine)))
        run_all(steps)
        ENGINES.release(self.engine)

    def _write_watermark(self) -> None:
        self.engine.write(index.write_watermark)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
