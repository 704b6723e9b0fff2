"""`hermes ask`: answer a question from the history, with quotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli import history
from hermes_cli.commands.sessions.search import NOTHING_FOUND, fill_first, finish_indexing
from hermes_cli.parser import add_json_option
from hermes_conversation import history_answers
from hermes_conversation.history_scope import ConversationHistory
from hermes_core.ids import new_session_id

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_conversation.history_answers import HistoryAnswer
    from hermes_state.store import SessionDB

EXAMPLES = """\
examples:
  hermes ask how did we fix the reconnecting websocket
  hermes ask --no-model which library renders the charts
  hermes ask what did I decide about the database last week --json

The model sees only what the search finds; each sentence of the answer cites a message. The
question is not stored (--save stores it with the answer). Exit code 1: nothing was found.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("question", metavar="QUESTION", nargs="+", help="the question")
    parser.add_argument("--no-model", action="store_true", help="print the quotations only")
    parser.add_argument("--model", metavar="NAME", default="", help="answer with this model")
    parser.add_argument("--save", action="store_true", help="store question and answer")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the answer."""
    question = " ".join(arguments.question)
    if not history.exists():
        nothing = history_answers.HistoryAnswer(question, [], [])
        history.print_none(arguments, out, history_answers.as_fields(nothing))
        return NOTHING_FOUND
    opened = history.open_for_writing() if arguments.save else history.open_for_reading()
    with opened as db:
        fill_first(db, out)
        answer = _answer(db, question, arguments, out)
        for each in answer.corrections:
            out.note(f"No message contains “{each.written}”: used “{each.used}”.")
        if arguments.json:
            out.json(history_answers.as_fields(answer))
        else:
            out.text(history_answers.as_text(answer))
        if arguments.save and answer.sentences:
            _save(db, answer)
            history.deliver_events(db)
        out.flush()
        finish_indexing(db, out)
    if answer.failure:
        out.error(answer.failure)
    return NOTHING_FOUND if answer.failure or not answer.quotations else 0


def _answer(
    db: SessionDB, question: str, arguments: argparse.Namespace, out: CommandOutput
) -> HistoryAnswer:
    all_history = ConversationHistory(db)
    if arguments.no_model:
        return history_answers.quote(all_history, question, history_answers.MAX_BUDGET_TOKENS)
    answer = history_answers.ask(all_history, question, model=arguments.model, on_step=out.progress)
    out.progress("")
    if answer.note and answer.quotations:
        out.note(f"{answer.note} The quotations are printed.")
    return answer


def _save(db: SessionDB, answer: HistoryAnswer) -> None:
    session_id = db.sessions.create_session(new_session_id(db.clock), "cli", model=answer.model)
    db.messages.append_message(session_id, "user", answer.question)
    db.messages.append_message(session_id, "assistant", history_answers.as_text(answer))
    db.sessions.end_session(session_id, "completed")
