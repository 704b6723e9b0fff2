"""Room in the window: made before a request that would not fit, and after one that did not.

Older messages are summed up first. Where there is nothing to sum up, long results are
shortened further for the request. The history keeps everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.context.budget import estimated, longest_result, reserve, with_short_results
from hermes_agent.events import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.context.compaction import Compacted
    from hermes_agent.messages import Message, Request
    from hermes_agent.providers.retry import Patient

SUMMED_UP: Final = "Older messages were summed up to make room; the history keeps them all."
SHORTENED: Final = "Long results were shortened to make room; the history keeps them whole."
REFUSED_SHARE: Final = 0.9  # of what was refused: the most that is tried next
LEAST_WINDOW: Final = 2_048  # tokens: no model in use reads less, whatever a server refuses
SHORTER: Final = 4


class Room:
    """The window of the model that answers, during one turn."""

    def __init__(self, patient: Patient, compress: Callable[[], Compacted | Failed]) -> None:
        self._patient = patient
        self._compress = compress
        self._divisor = 1
        self._is_used_up = False

    def fitted(self, messages: list[Message]) -> list[Message]:
        """The messages as they are sent: no result takes more than its share."""
        limit = longest_result(self._patient.current.window)
        return with_short_results(messages, limit // self._divisor)

    def is_short(self, request: Request) -> bool:
        """Whether a request is likely to leave too little room for the answer."""
        window = self._patient.current.window
        return not self._is_used_up and estimated(request) > window - reserve(window)

    def learn(self, refused: Request) -> None:
        """The model does not read as much as was thought."""
        provider = self._patient.current
        likely = max(LEAST_WINDOW, int(REFUSED_SHARE * estimated(refused)))
        provider.window = min(provider.window, likely)

    def make(self) -> str:
        """Make room; what was done, for people."""
        result = self._compress()
        if not isinstance(result, Failed) and result.summary:
            return SUMMED_UP
        self._divisor *= SHORTER
        self._is_used_up = True  # more cannot be done in this turn
        return SHORTENED
