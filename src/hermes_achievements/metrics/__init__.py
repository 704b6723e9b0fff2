"""Every metric: a named function from one session to the events that count.

COUNTS are summed up, PEAKS take the largest, VARIETY collects different values. A
metric's documentation is the first line of its function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.metrics import cost, peaks, results, shell, talk, tool_use, variety

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from hermes_achievements.metrics.session_view import Events, SessionFacts
    from hermes_achievements.metrics.variety import Seen

# Raised whenever the same facts can give other events: contributions are made anew.
METRIC_RULES: Final = 1


def _functions(*modules: ModuleType) -> dict[str, Callable[[SessionFacts], Events]]:
    """The public functions that each module defines itself, in the order of the text."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }


COUNTS: Final[dict[str, Callable[[SessionFacts], Events]]] = _functions(
    talk, tool_use, shell, results, cost
)
PEAKS: Final[dict[str, Callable[[SessionFacts], Events]]] = _functions(peaks)
VARIETY: Final[dict[str, Callable[[SessionFacts], Seen]]] = _functions(variety)  # type: ignore[assignment]
