"""`hermes bench recall`: how well the search answers the questions of a file."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict

from hermes_cli.filters import parse_positive
from hermes_cli.parser import add_command, add_json_option
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput
    from hermes_state.store import SessionDB

EXAMPLES = """\
examples:
  hermes bench recall questions.json
  hermes bench recall questions.json --every 4 --json

Your own history is not used: the conversations of the file are stored in a temporary folder.
docs/reference/bench-recall.md describes the format of the file and the figures.
"""
SEARCHED_MESSAGES: Final = 30
TURNS_COUNTED: Final = 10
SESSIONS_COUNTED: Final = 5
DAY_SECONDS: Final = 86_400.0
FIRST_DAY: Final = 1_700_000_000.0
ADVERSARIAL: Final = 5  # the category of questions whose evidence is not counted by message


class RecallTurn(TypedDict):
    """A message of a file; another field that is missing is an error."""

    id: str
    text: str
    speaker: NotRequired[str]
    role: NotRequired[str]
    caption: NotRequired[str]


class RecallSession(TypedDict):
    """A conversation of a file."""

    turns: list[RecallTurn]


class RecallQuestion(TypedDict):
    """A question of a file."""

    q: str
    evidence: list[str]
    category: NotRequired[int]


class RecallHistory(TypedDict):
    """A history of a file."""

    sessions: list[RecallSession]
    questions: list[RecallQuestion]
    speakers: NotRequired[list[str]]


class RecallFigures(NamedTuple):
    """Shares in percent, and CPU milliseconds per search."""

    questions: int
    hit_at_1: float
    hit_at_5: float
    turn_recall_at_10: float
    none: float
    cpu_ms: float


class Question(NamedTuple):
    """A question, its evidence by message, and the conversations of the evidence."""

    text: str
    evidence: frozenset[str]
    counts_turns: bool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    recall = add_command(
        actions, "recall", "measure how well the search answers questions",
        "hermes bench recall questions.json", run=run,
    )  # fmt: skip
    recall.add_argument("file", metavar="FILE", type=Path, help="histories with questions")
    recall.add_argument(
        "--every", type=parse_positive, default=1, metavar="N", help="ask every Nth question"
    )
    add_json_option(recall)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Store the histories, ask the questions, and print the figures."""
    histories = _read(arguments.file)
    results: list[tuple[bool, bool, float | None, bool, float]] = []
    for number, history in enumerate(histories, 1):
        out.progress(f"History {number} of {len(histories)}…")
        try:
            results += _measure(history, arguments.every)
        except KeyError as error:
            raise UsageError(f"{arguments.file}: history {number} lacks {error}") from error
        except (TypeError, AttributeError) as error:
            problem = "does not have the form of docs/reference/bench-recall.md"
            raise UsageError(f"{arguments.file}: history {number} {problem}") from error
    out.progress("")
    if not results:
        raise UsageError(f"{arguments.file} contains no questions with evidence")
    figures = _figures(results)
    if arguments.json:
        out.json(figures._asdict())
    else:
        out.pairs([
            ("questions", f"{figures.questions:,}"),
            ("first conversation is right", f"{figures.hit_at_1:.1f} %"),
            ("one of the first five is", f"{figures.hit_at_5:.1f} %"),
            ("evidence in the first ten messages", f"{figures.turn_recall_at_10:.1f} %"),
            ("nothing found", f"{figures.none:.1f} %"),
            ("CPU per search", f"{figures.cpu_ms:.1f} ms"),
        ])  # fmt: skip
    return 0


def _read(path: Path) -> list[RecallHistory]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, list):
        raise UsageError(f"{path} must contain a list of histories")
    return data


def _measure(
    history: RecallHistory, every: int
) -> Iterator[tuple[bool, bool, float | None, bool, float]]:
    """Per question: hit at 1, hit at 5, share of the evidence found, nothing found, CPU seconds."""
    from hermes_state.search.repository import SearchOptions  # noqa: PLC0415 - `--help` does without
    from hermes_state.store import SessionDB  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "state.db") as db:
        turns, sessions = _store(db, history)
        while not db.search.fill(5):
            pass
        for question in list(_questions(history))[::every]:
            began = time.process_time()
            answer = db.search.answer(question.text, SearchOptions(limit=SEARCHED_MESSAGES))
            seconds = time.process_time() - began
            found = list(dict.fromkeys(hit.session_id for hit in answer.hits))
            right = {sessions[turn] for turn in question.evidence if turn in sessions}
            first = {turns[hit.id] for hit in answer.hits[:TURNS_COUNTED]}
            share = len(first & question.evidence) / len(question.evidence)
            yield (
                bool(right.intersection(found[:1])),
                bool(right.intersection(found[:SESSIONS_COUNTED])),
                share if question.counts_turns else None,
                not found,
                seconds,
            )


def _store(db: SessionDB, history: RecallHistory) -> tuple[dict[int, str], dict[str, str]]:
    """Store the conversations; the turn of each message, and the session of each turn."""
    turns: dict[int, str] = {}
    sessions: dict[str, str] = {}
    first_speaker = next(iter(history.get("speakers") or ()), None)
    for day, session in enumerate(history["sessions"]):
        session_id = f"recall_{day:05d}"
        at = FIRST_DAY + day * DAY_SECONDS
        db.sessions.create_session(session_id, "import", started_at=at)
        for place, turn in enumerate(session["turns"]):
            speaker, caption = turn.get("speaker"), turn.get("caption")
            text = f"{speaker}: {turn['text']}" if speaker else turn["text"]
            text += f" [picture: {caption}]" if caption else ""
            role = turn.get("role") or ("user" if speaker == first_speaker else "assistant")
            row = db.messages.append_message(session_id, role, text, timestamp=at + place)
            turns[row], sessions[turn["id"]] = turn["id"], session_id
        db.sessions.end_session(session_id, "completed")
    return turns, sessions


def _questions(history: RecallHistory) -> Iterator[Question]:
    for item in history["questions"]:
        if item.get("evidence"):
            counts = item.get("category") != ADVERSARIAL
            yield Question(item["q"], frozenset(item["evidence"]), counts)


def _figures(results: list[tuple[bool, bool, float | None, bool, float]]) -> RecallFigures:
    shares = [share for _, _, share, _, _ in results if share is not None]

    def percent(values: list[Any]) -> float:
        return round(100 * float(sum(values)) / max(len(values), 1), 1)

    return RecallFigures(
        len(results),
        percent([result[0] for result in results]),
        percent([result[1] for result in results]),
        percent(shares),
        percent([result[3] for result in results]),
        round(1000 * sum(result[4] for result in results) / len(results), 1),
    )
