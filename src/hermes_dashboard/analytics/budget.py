"""What the current month has cost, compared with the user's own budget."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_dashboard.analytics.charts import BudgetView, Span, Sums

if TYPE_CHECKING:
    from hermes_dashboard.analytics.analysis import AnalyticsData

SETTING = "display.dollars_per_month"


def month_budget(data: AnalyticsData) -> BudgetView | None:
    """The budget of the current month; None without a budget, or before all costs are counted."""
    limit = budget_limit()
    if not limit or not data.is_complete:
        return None
    first = date.fromisoformat(data.today).replace(day=1)
    sums = Sums(data, Span(first.isoformat(), data.today))
    spent = round(sums.totals.cost_usd, 6)
    return BudgetView(
        month=data.today[:7], limit_usd=limit, spent_usd=spent, is_exceeded=spent > limit
    )


def budget_limit() -> float:
    """The budget in the settings; 0 without one."""
    if not is_set(SETTING):
        return 0.0
    return ConfigFile.of_home().settings().get_float(SETTING)
