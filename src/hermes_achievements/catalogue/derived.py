"""Values that are worked out from whole days, weeks and months, not summed up."""

from __future__ import annotations

from typing import Final

DERIVED: Final = {
    "active_days": "Days on which a person wrote.",
    "longest_streak": ("The longest run of active days; one missed day in any seven is forgiven."),
    "longest_week_streak": "The most weeks in a row, Monday to Sunday, with an active day.",
    "perfect_weeks": "Weeks, Monday to Sunday, with all seven days active.",
    "active_months": "Months with an active day.",
    "longest_month_streak": "The most months in a row with an active day.",
    "improved_months": (
        "Months with at least 100 tool results whose share of failures is lower than in the "
        "previous such month."
    ),
    "longest_improvement": "The most improved months in a row.",
    "spotless_days": "Days with at least 25 tool results and no failure, once they are over.",
    "days_together": "Days from the first active day to the last.",
    "longest_absence": "The longest pause between two active days, in days.",
    "tidy_months": "Months with at least ten conversations of which 80 % have a title.",
    "clean_months": "Months with at least ten conversations of which 90 % were ended properly.",
    "tested_months": "Months with at least ten commits and at least as many passed test runs.",
}
