"""What the current month has cost, compared with the user's own budget."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.config.file import ConfigFile
from hermes_core.config.presence import is_set
from hermes_dashboard.analytics.charts import Span, Sums

if TYPE_CHECKING:
    from hermes_dashboard.analytics.analysis import AnalyticsData

SETTING = "display.dollars_per_month"


class MonthBudget(NamedTuple):
    """The budget of a month, `YYYY-MM`, and what was spent so far."""

    month: str
    limit_usd: float
    spent_usd: float

    @property
    def is_exceeded(self) -> bool:
        """Whether more was spent."""
        return self.spent_usd > self.limit_usd


def month_budget(data: AnalyticsData) -> MonthBudget | None:
    """The budget of the current month; None without a budget, or before all costs are counted."""
    limit = budget_limit()
    if not limit or not data.is_complete:
        return None
    first = date.fromisoformat(data.today).replace(day=1)
    sums = Sums(data, Span(first.isoformat(), data.today))
    return MonthBudget(data.today[:7], limit, round(sums.totals.cost_usd, 6))


def budget_limit() -> float:
    """The budget in the settings; 0 without one."""
    if not is_set(SETTING):
        return 0.0
    return ConfigFile.of_home().settings().get_float(SETTING)
