"""All metrics: functions that return the counted events of a session.

COUNTS are summed, PEAKS take the maximum, VARIETY collects different values. The first line
of a function's docstring is the documentation of the metric; `CALL_METRICS` are one line each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.metrics import conversation, peaks, results, tool_use, variety

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from hermes_achievements.metrics.session_view import Events, SessionView
    from hermes_achievements.metrics.variety import DatedValues

# Incremented when the events of the same facts change: contributions are recomputed.
METRIC_RULES: Final = 3


def _functions(*modules: ModuleType) -> dict[str, Callable[[SessionView], Events]]:
    """The public functions defined in each module, in source order."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }


COUNTS: Final[dict[str, Callable[[SessionView], Events]]] = {
    **_functions(conversation, tool_use, results),
    **tool_use.CALL_METRICS,
}
PEAKS: Final[dict[str, Callable[[SessionView], Events]]] = _functions(peaks)
VARIETY: Final[dict[str, Callable[[SessionView], DatedValues]]] = _functions(variety)  # type: ignore[assignment]
