"""`hermes memory`: what the agent remembers, why, and changing that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.memory.files import MEMORY_KINDS
from hermes_agent.tools.base import ToolError
from hermes_cli import history
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import remembered_facts
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput
    from hermes_state.facts import Fact, FactChange

    Change = Callable[[AgentMemory, Fact], object]

EXAMPLES: Final = """\
examples:
  hermes memory                     list what the agent remembers
  hermes memory why 12              show the words that a fact rests on
  hermes memory add --user "Prefers short answers"
  hermes memory reject 12           no longer believe a fact; a review does not add it again
  hermes memory undo                undo the latest change, such as that of a review
"""
LIST_EXAMPLES: Final = (
    "examples:\n  hermes memory list\n  hermes memory list --state stale\n"
    "  hermes memory list --all --json\n"
)
NUMBER_HELP: Final = "the number of a fact, as listed"
NOTHING: Final = "Nothing is remembered yet."
NOT_FOUND: Final = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes memory`."""
    parser.set_defaults(run=list_facts, json=False, all=False, state=None)
    add_json_option(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=False)
    listing = add_command(
        actions, "list", "list facts", LIST_EXAMPLES, run=list_facts, has_json=True
    )
    chosen = listing.add_mutually_exclusive_group()
    chosen.add_argument("--all", action="store_true", help="also those that are not believed")
    chosen.add_argument(
        "--state", choices=["superseded", "rejected", "stale"], help="only those in this state"
    )
    add = add_command(
        actions, "add", "remember a fact", 'examples:\n  hermes memory add "Deploy with make"\n',
        run=add_fact, has_json=True,
    )  # fmt: skip
    add.add_argument("text", metavar="TEXT", nargs="+", help="the fact")
    add.add_argument("--user", action="store_true", help="it is about you, not about the work")
    for name, purpose, run in (
        ("show", "show a fact with its evidence, use and history", show),
        ("why", "show the words that a fact rests on", why),
        ("pin", "include a fact in each prompt", _changing(_pin, "Pinned")),
        ("unpin", "include a fact only where it fits", _changing(_unpin, "Unpinned")),
        ("reject", "no longer believe a fact", _changing(_reject, "Rejected")),
        ("confirm", "believe a fact again", _changing(_confirm, "Confirmed")),
    ):
        examples = f"examples:\n  hermes memory {name} 12\n"
        action = add_command(actions, name, purpose, examples, run=run, has_json=True)
        action.add_argument("number", metavar="NUMBER", type=int, help=NUMBER_HELP)
    undo = add_command(
        actions, "undo", "undo the latest change",
        "examples:\n  hermes memory undo\n  hermes memory undo 12\n",
        run=undo_change, has_json=True,
    )  # fmt: skip
    undo.add_argument("number", metavar="NUMBER", type=int, nargs="?", help="of this fact only")
    search = add_command(
        actions, "search", "search facts", "examples:\n  hermes memory search deploy\n",
        run=search_facts, has_json=True,
    )  # fmt: skip
    search.add_argument("query", metavar="WORDS", nargs="+", help="what to look for")
    add_command(
        actions, "check", "mark facts whose evidence is gone", "examples:\n  hermes memory check\n",
        run=check, has_json=True,
    )  # fmt: skip


def list_facts(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the facts in a state."""
    with history.open_to_complete() as db:
        memory = AgentMemory(db)
        facts = remembered_facts.all_facts(memory)
        states = {fact.state for fact in facts} if arguments.all else {arguments.state or "active"}
        chosen = [fact for fact in facts if fact.state in states]
        if arguments.json:
            out.json([remembered_facts.fact_fields(fact) for fact in chosen])
            return 0
        out.text(remembered_facts.as_list(chosen) or NOTHING)
        stale = sum(fact.state == "stale" for fact in facts)
        if stale and not arguments.all and arguments.state is None:
            out.hint(
                f"{human_format.plural(stale, 'fact')} without evidence any longer: "
                "`hermes memory list --state stale`"
            )
        elif chosen and not arguments.all and arguments.state is None:
            out.hint("Why? `hermes memory why NUMBER`")
    return 0


def add_fact(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Remember a fact of the owner."""
    with history.open_to_complete() as db:
        memory = AgentMemory(db)
        target = "user" if arguments.user else "memory"
        try:
            found = memory.add(target, " ".join(arguments.text))
        except ToolError as error:
            raise UsageError(str(error)) from error
        if arguments.json:
            out.json(remembered_facts.fact_fields(remembered_facts.fact_of(memory, found.fact_id)))
            return 0
        known = " (known already)" if found.outcome == "merged" else ""
        out.text(f"Remembered as fact {found.fact_id}{known}.")
        for fact in found.superseded:
            out.text(f"It supersedes fact {fact.id}: {fact.text}")
    return 0


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print a fact with everything about it."""
    with history.open_to_complete() as db:
        memory = AgentMemory(db)
        shown = remembered_facts.shown(db, remembered_facts.fact_of(memory, arguments.number))
        if arguments.json:
            out.json(shown.as_fields())
            return 0
        fact = shown.fact
        out.text(fact.text, "bold")
        out.pairs(
            [
                ("about", remembered_facts.heading(fact).removeprefix("About ")),
                ("state", remembered_facts.marks(fact) or "active"),
                ("added", f"{human_format.local(fact.created_at)} by {fact.created_by}"),
                ("used", _use(fact)),
                ("file", fact.file if fact.is_listed else "-"),
            ]
        )
        out.text(f"\n{shown.why()}\n")
        out.pairs(shown.history())
    return 0


def _use(fact: Fact) -> str:
    if not fact.times_used:
        return "in no conversation yet"
    count = human_format.plural(fact.times_used, "conversation")
    return f"in {count}, last {human_format.local(fact.last_used_at)}"


def why(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the evidence of a fact."""
    with history.open_to_complete() as db:
        shown = remembered_facts.shown(
            db, remembered_facts.fact_of(AgentMemory(db), arguments.number)
        )
        if arguments.json:
            out.json(shown.as_fields())
        else:
            out.text(f"{shown.fact.text}\n\n{shown.why()}")
    return 0


def _pin(memory: AgentMemory, fact: Fact) -> None:
    memory.pin(fact, "owner", is_pinned=True)


def _unpin(memory: AgentMemory, fact: Fact) -> None:
    memory.pin(fact, "owner", is_pinned=False)


def _reject(memory: AgentMemory, fact: Fact) -> None:
    memory.set_state(fact, "owner", is_active=False)


def _confirm(memory: AgentMemory, fact: Fact) -> None:
    memory.set_state(fact, "owner", is_active=True)


def _changing(change: Change, done: str) -> Callable[[argparse.Namespace, CommandOutput], int]:
    """An action that changes one fact."""

    def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
        with history.open_to_complete() as db:
            memory = AgentMemory(db)
            fact = remembered_facts.fact_of(memory, arguments.number)
            change(memory, fact)
            if arguments.json:
                out.json(remembered_facts.fact_fields(db.facts.get(fact.id)))
            else:
                out.text(f"{done}: {fact.text}")
                out.hint("To undo it: `hermes memory undo`")
        return 0

    return run


def undo_change(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Undo what was changed last."""
    with history.open_to_complete() as db:
        memory = AgentMemory(db)
        number = arguments.number
        fact = None if number is None else remembered_facts.fact_of(memory, number)
        changes = remembered_facts.undo_last(db, memory, fact)
        if arguments.json:
            out.json([_change_fields(change) for change in changes])
            return 0
        for change in changes:
            changed = db.facts.get(change.fact_id)
            out.text(f"Undone: fact {changed.id} was {change.reason}. It is {changed.state} now.")
            out.text(f"  {changed.text}")
    return 0


def _change_fields(change: FactChange) -> dict[str, object]:
    return {
        "fact_id": change.fact_id,
        "undone": change.reason,
        "made_at": change.made_at,
        "made_by": change.made_by,
    }


def search_facts(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the facts that share words with a query."""
    with history.open_to_complete() as db:
        facts = remembered_facts.all_facts(AgentMemory(db))
        found = remembered_facts.matching(facts, " ".join(arguments.query))
        if arguments.json:
            out.json([remembered_facts.fact_fields(fact) for fact in found])
        else:
            out.text(remembered_facts.as_list(found) or "No matching facts.")
    return 0 if found else NOT_FOUND


def check(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Compare all facts with their evidence."""
    with history.open_to_complete() as db:
        memory = AgentMemory(db)
        changed = db.facts.check()
        for target in MEMORY_KINDS:
            memory.facts(target)  # writes the files
        if arguments.json:
            out.json([remembered_facts.fact_fields(fact) for fact in changed])
            return 0
        for fact in changed:
            out.text(f"{fact.state}: fact {fact.id}, {fact.text}")
        if not changed:
            out.text("All facts have their evidence.")
    return 0
