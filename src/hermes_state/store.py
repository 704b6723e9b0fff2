"""SessionDB: the session store as programs and plugins use it."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_core.isolate import Step, run_all
from hermes_state.engine import process_identity
from hermes_state.engine.engine import ENGINES
from hermes_state.repository import MetaRepository, StoreContext
from hermes_state.sessions import index
from hermes_state.sessions.lists import ListRepository, refresh_index
from hermes_state.store_settings import StoreSettings
from hermes_state.upkeep.background_jobs import BackgroundJobs

if TYPE_CHECKING:
    from typing import Self

    from hermes_core.clock import Clock
    from hermes_state.calls.repository import CallRepository
    from hermes_state.delivery.api_requests import ApiRequestRepository
    from hermes_state.delivery.boundaries import BoundaryRepository
    from hermes_state.delivery.chats import ChatRepository
    from hermes_state.delivery.handoffs import HandoffRepository
    from hermes_state.delivery.inbox import InboxRepository, PausedPlaceRepository
    from hermes_state.delivery.leases import CompressionLockRepository, LeaseRepository
    from hermes_state.delivery.nodes import NodeRepository
    from hermes_state.delivery.open_questions import OpenQuestionRepository
    from hermes_state.delivery.outbox import OutboxRepository
    from hermes_state.delivery.people import PairingRepository, PeopleRepository
    from hermes_state.delivery.routes import RouteRepository
    from hermes_state.facts import FactRepository
    from hermes_state.files import FileRepository
    from hermes_state.imports.repository import ImportRepository
    from hermes_state.ledger.repository import LedgerRepository
    from hermes_state.messages.edits import EditRepository
    from hermes_state.messages.history import ExportRepository, MessageRepository
    from hermes_state.messages.pages import FeedRepository, TranscriptRepository
    from hermes_state.portable.repository import PortableRepository
    from hermes_state.repository import PurgeHook
    from hermes_state.schedules.repository import ScheduleRepository
    from hermes_state.search.repository import SearchRepository
    from hermes_state.sessions.labels import TagRepository, TitleRepository
    from hermes_state.sessions.lookup import LookupRepository
    from hermes_state.sessions.pages import FacetRepository, PageRepository
    from hermes_state.sessions.retention import RetentionRepository
    from hermes_state.sessions.rows import SessionRepository
    from hermes_state.sessions.sort_values import SortRepository
    from hermes_state.sessions.totals import TotalsRepository
    from hermes_state.sessions.trash import TrashRepository
    from hermes_state.sessions.usage import UsageRepository
    from hermes_state.upkeep.statistics import StatisticsRepository

log = logging.getLogger(__name__)


class SessionDB:
    """All conversations, in one file.

    `SessionDB()` opens the user's store. Instances are cheap: all instances of a file share
    one writing connection. Methods may be called from any thread; a method that changes
    data returns when the change is on disk.

    Each attribute is a repository for one kind of row, such as `db.inbox` and `db.leases`.
    The methods that hermes-agent has too can also be called on the store itself.
    """

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
        context = StoreContext(self.engine, self.clock, self.ids, self.identity, purge_hook)
        self.context = context
        self.lists = ListRepository(context)
        self._background = BackgroundJobs(self.engine, self._keep_house)
        self._is_open = True
        if not read_only and is_recovering:
            self._recover()

    @functools.cached_property
    def inbox(self) -> InboxRepository:
        from hermes_state.delivery.inbox import InboxRepository  # noqa: PLC0415 - as above

        return InboxRepository(self.context)

    @functools.cached_property
    def outbox(self) -> OutboxRepository:
        from hermes_state.delivery.outbox import OutboxRepository  # noqa: PLC0415 - as above

        return OutboxRepository(self.context)

    @functools.cached_property
    def routes(self) -> RouteRepository:
        from hermes_state.delivery.routes import RouteRepository  # noqa: PLC0415 - as above

        return RouteRepository(self.context)

    @functools.cached_property
    def pairings(self) -> PairingRepository:
        from hermes_state.delivery.people import PairingRepository  # noqa: PLC0415 - as above

        return PairingRepository(self.context)

    @functools.cached_property
    def people(self) -> PeopleRepository:
        from hermes_state.delivery.people import PeopleRepository  # noqa: PLC0415 - as above

        return PeopleRepository(self.context)

    @functools.cached_property
    def chats(self) -> ChatRepository:
        from hermes_state.delivery.chats import ChatRepository  # noqa: PLC0415 - as above

        return ChatRepository(self.context)

    @functools.cached_property
    def open_questions(self) -> OpenQuestionRepository:
        from hermes_state.delivery.open_questions import OpenQuestionRepository  # noqa: PLC0415 - as above

        return OpenQuestionRepository(self.context)

    @functools.cached_property
    def feed(self) -> FeedRepository:
        from hermes_state.messages.pages import FeedRepository  # noqa: PLC0415 - as above

        return FeedRepository(self.context)

    @functools.cached_property
    def nodes(self) -> NodeRepository:
        from hermes_state.delivery.nodes import NodeRepository  # noqa: PLC0415 - as above

        return NodeRepository(self.context)

    @functools.cached_property
    def paused_places(self) -> PausedPlaceRepository:
        from hermes_state.delivery.inbox import PausedPlaceRepository  # noqa: PLC0415 - as above

        return PausedPlaceRepository(self.context)

    @functools.cached_property
    def facets(self) -> FacetRepository:
        from hermes_state.sessions.pages import FacetRepository  # noqa: PLC0415 - as above

        return FacetRepository(self.context)

    @functools.cached_property
    def pages(self) -> PageRepository:
        from hermes_state.sessions.pages import PageRepository  # noqa: PLC0415 - as above

        return PageRepository(self.context)

    @functools.cached_property
    def sort_values(self) -> SortRepository:
        from hermes_state.sessions.sort_values import SortRepository  # noqa: PLC0415 - as above

        return SortRepository(self.context)

    @functools.cached_property
    def totals(self) -> TotalsRepository:
        from hermes_state.sessions.totals import TotalsRepository  # noqa: PLC0415 - as above

        return TotalsRepository(self.context)

    @functools.cached_property
    def transcripts(self) -> TranscriptRepository:
        from hermes_state.messages.pages import TranscriptRepository  # noqa: PLC0415 - as above

        return TranscriptRepository(self.context)

    @functools.cached_property
    def sessions(self) -> SessionRepository:
        from hermes_state.sessions.rows import SessionRepository  # noqa: PLC0415 - as above

        return SessionRepository(self.context)

    @functools.cached_property
    def tags(self) -> TagRepository:
        from hermes_state.sessions.labels import TagRepository  # noqa: PLC0415 - as above

        return TagRepository(self.context)

    @functools.cached_property
    def titles(self) -> TitleRepository:
        from hermes_state.sessions.labels import TitleRepository  # noqa: PLC0415 - as above

        return TitleRepository(self.context)

    @functools.cached_property
    def lookup(self) -> LookupRepository:
        from hermes_state.sessions.lookup import LookupRepository  # noqa: PLC0415 - as above

        return LookupRepository(self.context)

    @functools.cached_property
    def usage(self) -> UsageRepository:
        from hermes_state.sessions.usage import UsageRepository  # noqa: PLC0415 - as above

        return UsageRepository(self.context)

    @functools.cached_property
    def ledger(self) -> LedgerRepository:
        from hermes_state.ledger.repository import LedgerRepository  # noqa: PLC0415 - as above

        return LedgerRepository(self.context)

    @functools.cached_property
    def trash(self) -> TrashRepository:
        from hermes_state.sessions.trash import TrashRepository  # noqa: PLC0415 - as above

        return TrashRepository(self.context, self.ledger)

    @functools.cached_property
    def meta(self) -> MetaRepository:
        return MetaRepository(self.context)

    @functools.cached_property
    def retention(self) -> RetentionRepository:
        from hermes_state.sessions.retention import RetentionRepository  # noqa: PLC0415 - as above

        return RetentionRepository(self.context, self.trash, self.meta)

    @functools.cached_property
    def messages(self) -> MessageRepository:
        from hermes_state.messages.history import MessageRepository  # noqa: PLC0415 - as above

        return MessageRepository(self.context)

    @functools.cached_property
    def edits(self) -> EditRepository:
        from hermes_state.messages.edits import EditRepository  # noqa: PLC0415 - as above

        return EditRepository(self.context)

    @functools.cached_property
    def exports(self) -> ExportRepository:
        from hermes_state.messages.history import ExportRepository  # noqa: PLC0415 - as above

        return ExportRepository(self.context, self.messages, self.lists)

    @functools.cached_property
    def search(self) -> SearchRepository:
        from hermes_state.search.repository import SearchRepository  # noqa: PLC0415 - as above

        return SearchRepository(self.context)

    @functools.cached_property
    def statistics(self) -> StatisticsRepository:
        from hermes_state.upkeep.statistics import StatisticsRepository  # noqa: PLC0415 - as above

        return StatisticsRepository(self.context)

    @functools.cached_property
    def leases(self) -> LeaseRepository:
        from hermes_state.delivery.leases import LeaseRepository  # noqa: PLC0415 - as above

        return LeaseRepository(self.context)

    @functools.cached_property
    def boundaries(self) -> BoundaryRepository:
        from hermes_state.delivery.boundaries import BoundaryRepository  # noqa: PLC0415 - as above

        return BoundaryRepository(self.context)

    @functools.cached_property
    def handoffs(self) -> HandoffRepository:
        from hermes_state.delivery.handoffs import HandoffRepository  # noqa: PLC0415 - as above

        return HandoffRepository(self.context)

    @functools.cached_property
    def compression_locks(self) -> CompressionLockRepository:
        from hermes_state.delivery.leases import CompressionLockRepository  # noqa: PLC0415 - as above

        return CompressionLockRepository(self.context)

    @functools.cached_property
    def imports(self) -> ImportRepository:
        """Conversations of other agents."""
        from hermes_state.imports.repository import ImportRepository  # noqa: PLC0415 - most commands do without

        return ImportRepository(self.context)

    @functools.cached_property
    def portable(self) -> PortableRepository:
        """Exports, imports and backups."""
        from hermes_state.portable.repository import PortableRepository  # noqa: PLC0415 - as above

        return PortableRepository(self.context, self.lists)

    @functools.cached_property
    def files(self) -> FileRepository:
        """Files of conversations."""
        from hermes_state.files import FileRepository  # noqa: PLC0415 - as above

        return FileRepository(self.context)

    @functools.cached_property
    def calls(self) -> CallRepository:
        """What tool calls did."""
        from hermes_state.calls.repository import CallRepository  # noqa: PLC0415 - as above

        return CallRepository(self.context)

    @functools.cached_property
    def facts(self) -> FactRepository:
        """What the agent remembers."""
        from hermes_state.facts import FactRepository  # noqa: PLC0415 - as above

        return FactRepository(self.context)

    @functools.cached_property
    def api_requests(self) -> ApiRequestRepository:
        """Requests of API clients."""
        from hermes_state.delivery.api_requests import ApiRequestRepository  # noqa: PLC0415 - as above

        return ApiRequestRepository(self.context)

    @functools.cached_property
    def schedules(self) -> ScheduleRepository:
        """Scheduled jobs."""
        from hermes_state.schedules.repository import ScheduleRepository  # noqa: PLC0415 - as above

        return ScheduleRepository(self.context)

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
            self.facts.check()
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
        if "search" in self.__dict__ and "updater" in self.search.__dict__:
            self.search.updater.stop()
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

    def __exit__(self, *_exception: object) -> None:
        self.close()
