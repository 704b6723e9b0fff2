"""SessionDB: the session store as programs and plugins use it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_core.isolate import Step, run_all
from hermes_state.delivery.boundaries import BoundaryPart
from hermes_state.delivery.chats import ChatPart
from hermes_state.delivery.compression_locks import CompressionLockPart
from hermes_state.delivery.handoffs import HandoffPart
from hermes_state.delivery.inbox import InboxPart
from hermes_state.delivery.leases import LeasePart
from hermes_state.delivery.outbox import OutboxPart
from hermes_state.delivery.pairings import PairingPart
from hermes_state.delivery.people import PeoplePart
from hermes_state.delivery.routes import RoutePart
from hermes_state.engine import process_identity
from hermes_state.engine.engine import ENGINES
from hermes_state.messages.edits import HistoryEditPart
from hermes_state.messages.history import ExportPart
from hermes_state.messages.pages import TranscriptPart
from hermes_state.portable.part import PortablePart
from hermes_state.search.part import SearchPart
from hermes_state.sessions import index
from hermes_state.sessions.facets import FacetPart
from hermes_state.sessions.labels import TagPart, TitlePart
from hermes_state.sessions.lookup import ResolvePart
from hermes_state.sessions.pages import PagePart
from hermes_state.sessions.retention import PrunePart
from hermes_state.sessions.rows import SessionPart
from hermes_state.sessions.totals import NumbersPart
from hermes_state.sessions.usage import UsagePart
from hermes_state.store_settings import StoreSettings
from hermes_state.upkeep.background_jobs import BackgroundJobs
from hermes_state.upkeep.crash_recovery import sweep
from hermes_state.upkeep.meta import MetaPart
from hermes_state.upkeep.statistics import StatisticsPart

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from hermes_core.clock import Clock
    from hermes_state.part import PurgeHook

log = logging.getLogger(__name__)


class SessionDB(
    SessionPart,
    ExportPart,
    PortablePart,
    PagePart,
    FacetPart,
    NumbersPart,
    TranscriptPart,
    TagPart,
    TitlePart,
    ResolvePart,
    SearchPart,
    HistoryEditPart,
    PrunePart,
    UsagePart,
    MetaPart,
    CompressionLockPart,
    HandoffPart,
    LeasePart,
    InboxPart,
    OutboxPart,
    BoundaryPart,
    RoutePart,
    PairingPart,
    PeoplePart,
    ChatPart,
    StatisticsPart,
):
    """All conversations, in one file.

    `SessionDB()` opens the user's store. Instances are cheap: all instances of a file share
    one writing connection. Methods may be called from any thread; a method that changes
    data returns when the change is on disk.
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
        self.purge_hook = purge_hook
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
        self.db_path = self.engine.path
        self.ids = MessageIds(self.clock)
        self.identity = ENGINES.identity
        self.journal = self.engine.journal
        self._background = BackgroundJobs(self.engine, self._keep_house)
        self._is_open = True
        if not read_only and is_recovering:
            self._recover()

    def _recover(self) -> None:
        """Recover the data of dead processes, and index what other programs wrote."""
        run_all(
            [
                Step("replay the journal", lambda: self.journal.replay_orphans(self.engine)),
                Step("sweep after crashes", lambda: sweep(self.engine, self.identity, self.ids)),
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
        if self.is_house_keeping_due():
            self.repair_index()
            self.keep_house()

    def _start_background(self) -> None:
        self.refresh_index()
        self._background.start(is_due=self.is_house_keeping_due())

    def sweep(self) -> list[str]:
        """Settle what dead processes left; returns the conversations that were ended."""
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
            "refuses them; they will be stored when it recovers"
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
