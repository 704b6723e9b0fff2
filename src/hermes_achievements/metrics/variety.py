"""Variety metrics: different values of a kind, dated by their first appearance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.classification.model_names import model_maker, normal_model
from hermes_achievements.metrics.facts import TIME_FIELD, Fact
from hermes_core.history_rows import AGENT_SOURCES

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import SessionView

DatedValues = list[tuple[Fact, str]]

NOTABLE_DAYS: Final = {
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
FRIDAY_WEEKDAY: Final = 4
OWN_AGENT: Final = "hermes"


def tool_kinds(session: SessionView) -> DatedValues:
    """Different tools called."""
    return [(fact, tool) for tool, fact in session.first_tools.items()]


def models(session: SessionView) -> DatedValues:
    """Different models; one model counts once, regardless of its provider."""
    model = normal_model(session.row.model)
    return [(session.facts[0], model)] if model and session.facts else []


def makers(session: SessionView) -> DatedValues:
    """Different companies and labs whose models were used."""
    made_by = model_maker(session.row.model)
    return [(session.facts[0], made_by)] if made_by and session.facts else []


def places(session: SessionView) -> DatedValues:
    """Different places a person wrote from: terminal, web page, chat apps."""
    source = session.row.source
    is_place = bool(session.user_messages and source and source not in AGENT_SOURCES)
    return [(session.user_messages[0], source)] if is_place else []


def agents(session: SessionView) -> DatedValues:
    """Different agents a person used: this one, and those that were imported."""
    return [(session.user_messages[0], _agent(session))] if session.user_messages else []


def project_agents(session: SessionView) -> DatedValues:
    """Different pairs of a folder and an agent that worked there for a person."""
    project = session.row.project
    is_counted = bool(project and session.user_messages)
    return [(session.user_messages[0], f"{project}:{_agent(session)}")] if is_counted else []


def _agent(session: SessionView) -> str:
    source = session.row.source
    return source if source in AGENT_SOURCES else OWN_AGENT


def languages(session: SessionView) -> DatedValues:
    """Different kinds of files written or edited, by their extension."""
    return [
        (fact, kind)
        for file, fact in session.first_changes.items()
        if (kind := file.partition(":")[0])
    ]


def programs(session: SessionView) -> DatedValues:
    """Different programs run in the shell."""
    return [(fact, program) for program, fact in session.first_programs.items()]


def hours(session: SessionView) -> DatedValues:
    """Different hours of the day at which a person wrote."""
    return [
        (fact, str(session.calendar.at(fact[TIME_FIELD]).hour)) for fact in session.user_messages
    ]


def weekdays(session: SessionView) -> DatedValues:
    """Different days of the week on which a person wrote."""
    return [(fact, str(local.weekday)) for fact, local in session.first_on_days.values()]


def months(session: SessionView) -> DatedValues:
    """Different months of the year in which a person wrote."""
    return [(fact, local.day[5:7]) for fact, local in session.first_on_days.values()]


def notable_days(session: SessionView) -> DatedValues:
    """Different notable days on which a person wrote, such as New Year or a Friday the 13th."""
    results: DatedValues = []
    for fact, local in session.first_on_days.values():
        name = NOTABLE_DAYS.get(local.day[5:])
        if name:
            results.append((fact, name))
        if local.day.endswith("-13") and local.weekday == FRIDAY_WEEKDAY:
            results.append((fact, "friday the 13th"))
    return results
