"""Tells a user who looks at another window that something needs attention."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.terminal_text import one_line

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp

NOTIFICATION: Final = "\x1b]9;Hermes: {}\a"  # OSC 9


class NotificationSettings(NamedTuple):
    """How to notify, and how long a turn must take for it."""

    kind: str = "bell"
    seconds: int = 10


DEFAULT_SETTINGS: Final = NotificationSettings()


class TurnNotifier:
    """The focus of the window and the duration of the turn."""

    def __init__(self, app: HermesApp, settings: NotificationSettings) -> None:
        self._app = app
        self._settings = settings
        self._started_at = time.monotonic()
        self.has_focus: bool | None = None  # unknown, as some terminals do not report it

    def note_start(self) -> None:
        """A turn starts."""
        self._started_at = time.monotonic()

    def announce(self, text: str, *, is_urgent: bool = False) -> None:
        """Notify, unless the user looks here; of what is not urgent only after a long turn."""
        is_long = time.monotonic() - self._started_at >= self._settings.seconds
        if self._settings.kind == "off" or not (is_long or is_urgent):
            return
        if self.has_focus:
            return
        driver = self._app._driver  # noqa: SLF001 - no public API
        if self._settings.kind == "notification" and driver is not None:
            driver.write(NOTIFICATION.format(one_line(text)))
        else:
            self._app.bell()
