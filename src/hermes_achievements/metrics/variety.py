"""Variety: different values of a kind, each dated by its first appearance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification import tool_kinds as tools
from hermes_achievements.classification.model_names import maker, normal_model
from hermes_achievements.classification.shell_commands import BACKGROUND
from hermes_achievements.metrics.facts import TIME_FIELD, Fact

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import SessionFacts

Seen = list[tuple[Fact, str]]

NOTABLE: Final = {
    "01-01": "new year",
    "02-14": "valentine's day",
    "02-29": "leap day",
    "03-14": "pi day",
    "04-01": "april fools' day",
    "05-04": "star wars day",
    "10-31": "halloween",
    "12-24": "christmas eve",
    "12-31": "new year's eve",
}
FRIDAY: Final = 4


def tool_kinds(s: SessionFacts) -> Seen:
    """Different tools called."""
    return [(call.fact, call.tool) for call in s.calls]


def models(s: SessionFacts) -> Seen:
    """Different models; one model is one whatever provider it came by."""
    model = normal_model(s.row.model)
    return [(s.facts[0], model)] if model and s.facts else []


def makers(s: SessionFacts) -> Seen:
    """Different companies and labs whose models were used."""
    made_by = maker(s.row.model)
    return [(s.facts[0], made_by)] if made_by and s.facts else []


def places(s: SessionFacts) -> Seen:
    """Different places a person spoke from: terminal, web page, chat apps."""
    return [(s.said[0], s.row.source)] if s.said and s.row.source else []


def languages(s: SessionFacts) -> Seen:
    """Different kinds of files written or edited, by their extension."""
    return [
        (call.fact, kind)
        for call in s.calls
        if call.does in (tools.WRITE, tools.EDIT)
        for word in call.words
        if (kind := word.partition(":")[0])
    ]


def programs(s: SessionFacts) -> Seen:
    """Different programs run in the shell."""
    return [
        (call.fact, word.partition(" ")[0])
        for call in s.by.get(tools.SHELL, ())
        for word in call.words
        if word != BACKGROUND
    ]


def hours(s: SessionFacts) -> Seen:
    """Different hours of the day at which a person wrote."""
    return [(fact, str(s.calendar.at(fact[TIME_FIELD]).hour)) for fact in s.said]


def weekdays(s: SessionFacts) -> Seen:
    """Different days of the week on which a person wrote."""
    return [(fact, str(s.calendar.at(fact[TIME_FIELD]).weekday)) for fact in s.said]


def months(s: SessionFacts) -> Seen:
    """Different months of the year in which a person wrote."""
    return [(fact, s.calendar.at(fact[TIME_FIELD]).day[5:7]) for fact in s.said]


def notable_days(s: SessionFacts) -> Seen:
    """Different notable days on which a person wrote, such as New Year or a Friday the 13th."""
    results: Seen = []
    for fact in s.said:
        local = s.calendar.at(fact[TIME_FIELD])
        name = NOTABLE.get(local.day[5:])
        if name:
            results.append((fact, name))
        if local.day.endswith("-13") and local.weekday == FRIDAY:
            results.append((fact, "friday the 13th"))
    return results
