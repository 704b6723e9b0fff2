"""Every metric once more, as plainly as it can be said: one pass over all rows for each.

Nothing is remembered between rows, sessions or metrics. Of the code under test only tables
of words are used. Shell commands are read in one go from left to right.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_achievements import command_kinds, commands, models, paths, tools
from hermes_achievements.history import MessageRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import tzinfo

TRACE = "Traceback (most recent call last)"
EXIT_LINE = re.compile(
    r"\W{0,3}(process )?exit(ed)?( with)?( code| status)?[ :=]+(?P<code>-?\d{1,5})\W{0,3}",
    re.IGNORECASE | re.ASCII,
)
CLEAN = (
    "cli_close new_session session_reset tui_close agent_close branched compression "
    "cron_complete resumed_other session_switch user_exit idle daily"
)
NOTABLE = {
    "01-01": "new year", "02-14": "valentine's day", "02-29": "leap day", "03-14": "pi day",
    "04-01": "april fools' day", "05-04": "star wars day", "10-31": "halloween",
    "12-24": "christmas eve", "12-31": "new year's eve",
}  # fmt: skip


class Past(NamedTuple):
    """A whole history."""

    sessions: list[SessionRow]
    messages: dict[str, list[MessageRow]]


class Talk(NamedTuple):
    """The rows of one session that count, in the order in which they happened."""

    row: SessionRow
    rows: list[MessageRow]
    zone: tzinfo


class Call(NamedTuple):
    """A tool call as it was stored."""

    row: MessageRow
    tool: str
    mark: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    """A tool's answer; `call` is the one it answers."""

    row: MessageRow
    tool: str
    call: Call | None
    has_failed: bool
    exit_code: int
    has_trace: bool


Events = list[tuple[MessageRow, int]]


# --- rows that count ---------------------------------------------------------------------


def talks(past: Past, zone: tzinfo) -> Iterator[Talk]:
    for session in past.sessions:
        rows = [row for row in past.messages.get(session.id, []) if adds(row) and not row.is_copy]
        if session.kind in ("branch", "continuation"):
            rows = without_copies(session, rows, past.messages.get(session.parent_id or "", []))
        yield Talk(session, sorted(rows, key=lambda row: (row.at, row.id)), zone)


def adds(row: MessageRow) -> bool:
    return row.role in ("tool", "assistant") or (row.role == "user" and not row.is_observed)


def without_copies(
    session: SessionRow, rows: list[MessageRow], parents: list[MessageRow]
) -> list[MessageRow]:
    unused = [likeness(row) for row in parents]
    kept = []
    for row in rows:
        if row.at <= session.started_at + 60 and likeness(row) in unused:
            unused.remove(likeness(row))
        else:
            kept.append(row)
    return kept


def likeness(row: MessageRow) -> tuple[str, str, bytes, bytes]:
    mark = row.call_id or "" if row.role == "tool" else ""
    return (row.role, mark, (row.tool_calls or b"")[:200], (row.content or b"")[:200])


# --- what rows say -----------------------------------------------------------------------


def loaded(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def does(tool: str) -> str:
    for name in (tool, tool.lower()):
        if name in tools.DOES:
            return tools.DOES[name]
    if tool.lower().startswith("browser_"):
        return tools.BROWSER
    return tools.MCP if re.match("mcp[_-]", tool.lower()) else tools.OTHER


def calls_of(row: MessageRow) -> list[Call]:
    found = loaded(row.tool_calls) if row.role == "assistant" else None
    calls = []
    for one in found if isinstance(found, list) else []:
        if not isinstance(one, dict):
            continue
        function = one["function"] if isinstance(one.get("function"), dict) else one
        name, mark = function.get("name"), one.get("id") or one.get("call_id")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = loaded(arguments)
        if isinstance(name, str) and name:
            mark = mark if isinstance(mark, str) else ""
            arguments = arguments if isinstance(arguments, dict) else {}
            calls.append(Call(row, name[:64], mark, arguments))
    return calls


def calls(talk: Talk, *operations: str) -> list[Call]:
    found = [call for row in talk.rows for call in calls_of(row)]
    return [call for call in found if not operations or does(call.tool) in operations]


def labels(call: Call) -> list[str]:
    """What a shell call ran."""
    return [label.rstrip("~?") for label in told(call)]


def told(call: Call) -> list[str]:
    """What a shell call ran, with `~` or `?` where the exit code does not tell all about it."""
    command = call.arguments.get("command") or call.arguments.get("cmd") or ""
    found = shell_labels(command) if isinstance(command, str) else []
    return [*found, "&"] if call.arguments.get("background") is True else found


def files(call: Call) -> list[tuple[str, str]]:
    """The files a call names, as extension and path."""
    named: list[Any] = []
    for key in paths.KEYS:
        value = call.arguments.get(key)
        named += [value] if isinstance(value, str) else []
        for one in value[:50] if isinstance(value, list) else []:
            path = one.get("path") or one.get("file_path") if isinstance(one, dict) else one
            named.append(path if isinstance(path, str) else "")
    patch = call.arguments.get("patch") or call.arguments.get("diff")
    if not named and isinstance(patch, str):
        named = patched_files(patch)[:50]
    return [file for path in named if (file := file_of(path))]


def patched_files(patch: str) -> list[str]:
    found = []
    for line in patch.split("\n"):
        for start in ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ "):
            if line.startswith(start):
                path = line.removeprefix(start).split("\t")[0]
                found.append(path.removeprefix("b/") if start == "+++ " else path)
    return [path for path in found if path and not path[0].isspace()]


def file_of(path: str) -> tuple[str, str] | None:
    path = path.strip().replace("\\", "/")
    if not path or path.endswith("/") or "\n" in path:
        return None
    path = posixpath.normpath(path)
    if path in (".", "..", "/dev/null"):
        return None
    name = path.split("/")[-1].lower()
    before, dot, ending = name.rpartition(".")
    is_extension = before and dot and re.fullmatch("[a-z0-9_+-]{1,12}", ending)
    kind = paths.SAME.get(ending, ending) if is_extension else ""
    return paths.NAMED.get(name, kind), path


# --- how calls went ----------------------------------------------------------------------


def results(talk: Talk) -> list[Result]:
    found = []
    for position, row in enumerate(talk.rows):
        if row.role == "tool":
            call = answered(talk.rows[:position], row)
            name = (row.tool_name or "")[:64]
            tool = call.tool if call else name
            failed, code, trace = outcome(row.content or b"", does(name or tool))
            if call and code == 1 and not trace and is_question(call):
                failed, code = False, 0
            found.append(Result(row, tool, call, failed, code, trace))
    return found


def is_question(call: Call) -> bool:
    """Whether exit code 1 is an answer of the last command."""
    return does(call.tool) == tools.SHELL and any(
        label in command_kinds.ANSWERING for label in told(call)[-1:]
    )


def answered(before: list[MessageRow], row: MessageRow) -> Call | None:
    for earlier in reversed(before):
        for call in reversed(calls_of(earlier)) if row.call_id else []:
            if call.mark == row.call_id:
                return call
    return None


def outcome(content: bytes, operation: str) -> tuple[bool, int, bool]:
    """Whether the call failed, with which exit code, and whether it shows a traceback."""
    content = content.lstrip()
    result = loaded(content) if content.startswith(b"{") else None
    is_running = operation in tools.RUNNING_OPERATIONS
    if isinstance(result, dict):
        trace = is_running and shows_trace(result)
        code = exit_code(result)
        failed = is_error(result)
    else:
        trace = is_running and shows_trace(content.decode(errors="replace"))
        code = printed_code(content) if operation == tools.SHELL else None
        failed = False
    if code is None:
        return failed or trace, 0, trace
    return code != 0, as_shells_see(code), trace


def is_error(result: dict[str, Any]) -> bool:
    status = result.get("status")
    bad = ("error", "failed", "failure", "timeout", "timed_out")
    is_bad = isinstance(status, str) and status.lower() in bad
    return bool(result.get("error")) or result.get("success") is False or is_bad


def exit_code(result: dict[str, Any]) -> int | None:
    keys = ("exit_code", "returncode", "return_code", "exitCode", "exit_status")
    codes = [result[key] for key in keys if type(result.get(key)) is int]
    return codes[0] if codes else None


def as_shells_see(code: int) -> int:
    if -128 < code < 0:
        code = 128 - code
    return code % 256 or (1 if code else 0)


def shows_trace(value: Any) -> bool:
    if isinstance(value, str):
        return any(line.startswith(TRACE) for line in value.split("\n"))
    values = list(value.values()) if isinstance(value, dict) else value
    return isinstance(values, list) and any(shows_trace(one) for one in values)


def printed_code(content: bytes) -> int | None:
    """The exit code on a line of its own, within 160 bytes of either end."""
    start = 0
    for line in content.split(b"\n"):
        end = start + len(line)
        is_near = end < 160 or start - 1 >= len(content) - 160 or len(content) <= 320
        match = EXIT_LINE.fullmatch(line.decode("latin-1"))
        if is_near and match:
            return int(match["code"])
        start = end + 1
    return None


def commands_of(result: Result) -> list[str]:
    call = result.call
    return told(call) if call and does(call.tool) == tools.SHELL else []


def won(result: Result, wanted: frozenset[str]) -> bool:
    """Whether one of these commands is known to have gone well."""
    known = {label.rstrip("~") for label in commands_of(result)}
    return not result.has_failed and bool(known & wanted)


def lost(result: Result, wanted: frozenset[str]) -> bool:
    """Whether one of these commands is known to have failed."""
    return result.has_failed and bool({*commands_of(result)} & wanted)


# --- what talks are ----------------------------------------------------------------------


def is_conversation(talk: Talk) -> bool:
    return talk.row.kind in ("conversation", "branch")


def is_spoken_to(talk: Talk) -> bool:
    return talk.row.kind in ("conversation", "branch", "continuation")


def said(talk: Talk) -> list[MessageRow]:
    return [row for row in talk.rows if row.role == "user"] if is_spoken_to(talk) else []


def replies(talk: Talk) -> list[MessageRow]:
    return [row for row in talk.rows if row.role == "assistant" and not calls_of(row)]


def began(talk: Talk) -> list[MessageRow]:
    """The first thing a person said in a conversation of its own, as a list of one."""
    return said(talk)[:1] if is_conversation(talk) else []


def last(talk: Talk) -> list[MessageRow]:
    return talk.rows[-1:]


def gaps(talk: Talk) -> list[tuple[MessageRow, float]]:
    return [(row, row.at - talk.rows[position].at) for position, row in enumerate(talk.rows[1:])]


def local(talk: Talk, row: MessageRow) -> datetime:
    return moment(row.at, talk.zone)


def moment(at: float, zone: tzinfo) -> datetime:
    first = datetime(1970, 1, 2, tzinfo=UTC).timestamp()
    final = datetime(9998, 1, 1, tzinfo=UTC).timestamp()
    return datetime.fromtimestamp(min(max(at, first), final), zone)


def model(talk: Talk) -> str:
    name = talk.row.model.strip().lower().split("/")[-1].replace("_", "-")
    if name in ("", "none", "null", "unknown"):
        return ""
    while True:
        match = models.SUFFIX.search(name)
        if match is None or match.start() == 0:
            break
        name = name[: match.start()]
    return re.sub(r"(?<=\d)-(?=\d{1,2}(-|$))", ".", name)


def maker(talk: Talk) -> str:
    name = model(talk)
    for family, made_by in models.FAMILIES:
        rest = name.removeprefix(family)
        if rest != name and not rest[:1].isalpha():
            return made_by
    parts = talk.row.model.strip().lower().split("/")
    if not name or len(parts) > 1:
        return parts[-2] if name else ""
    return re.split(r"[-:.\d]", name)[0] or name


# --- shell commands ----------------------------------------------------------------------

TOKENS = re.compile(
    r"""
      (?P<quoted>  '[^']*' | "(?:[^"\\]|\\.)*" )
    | (?P<joint>   \\\n | \s (?<!\n) )
    | (?P<escaped> \\. )
    | (?P<comment> \#[^\n]* )
    | (?P<word>    <<< | \$\(\(.*?\)\) | \$?\{\S*?\} | (?<=\w=)\([^)]*\) )
    | <<-?[ \t]*\\?(?P<mark>['"]?)(?P<here>[A-Za-z_]\w*)(?P=mark)
    | (?P<cut>     && | \|\| | [;|\n`()] | (?<![<>&])&(?![>&]) | \$\( | \{(?=\s) | \} )
    | (?P<other>   . )
    """,
    re.DOTALL | re.VERBOSE,
)
VALUED = {
    "sudo": "-u -g -h -p -C", "doas": "-u", "nice": "-n", "env": "-u -C", "xargs": "-n -I -P -L -d",
    "timeout": "-s -k", "gtimeout": "-s -k", "ionice": "-c -n -p", "watch": "-n", "exec": "-a",
    "stdbuf": "-i -o -e", "time": "-f -o",
    "uv": "--with --python -p --extra --group --project --directory --env-file",
}  # fmt: skip


@dataclass
class Part:
    """A simple command: its text, what ends it, and the one behind that."""

    text: str = ""
    end: str = ""
    then: Part | None = None
    is_inside: bool = False  # of $(...), whose exit code nobody sees


def shell_labels(command: str) -> list[str]:
    parts, is_background = simple_commands(command[: commands.LONGEST])
    found = [(label_of(part.text.split()), part) for part in parts]
    known = [label + tells(part) for label, part in found if label][: commands.MOST_LABELS]
    return [*known, "&"] if is_background else known


def tells(part: Part) -> str:
    """What the exit code says: all about it, only its success (~), or nothing (?)."""
    if part.is_inside:
        return "?"
    if part.then is None or (part.end in (";", "\n") and is_empty(part.then)):
        return ""
    if part.end in ("(", ")", "{", "}"):
        return tells(part.then)
    return "~" if part.end == "&&" and tells(part.then) != "?" else "?"


def is_empty(part: Part) -> bool:
    is_last = part.then is None or (part.end in (";", "\n") and is_empty(part.then))
    return is_last and not part.text.strip()


def simple_commands(text: str) -> tuple[list[Part], bool]:
    """Each simple command, and whether the last runs in the background."""
    parts, marks, position, final = [part := Part()], [], 0, ""
    outer: list[tuple[str, Part]] = []
    while match := TOKENS.match(text, position):
        kind, token, position = match.lastgroup or "", match.group(), match.end()
        if kind == "comment" and part.text and not part.text[-1].isspace():
            kind, token, position = "other", "#", match.start() + 1
        if kind == "here":
            marks.append(match["here"])
        elif outer and token == outer[-1][0]:
            part = outer.pop()[1]
        elif token in ("$(", "`"):
            part.text += "\x01"
            outer.append((")" if token == "$(" else "`", part))
            parts.append(part := Part(is_inside=True))
        elif kind == "cut":
            part.end, part.then = token, Part(is_inside=part.is_inside)
            parts.append(part := part.then)
            while token == "\n" and marks:
                end = closing_line(marks.pop(0)).search(text, position)
                position = end.end() if end else position
        elif kind != "comment":
            part.text += bare(kind, token)
        if kind != "comment" and not token.isspace() and token != ";":
            final = token if kind == "cut" else ""
    return parts, final == "&"


def closing_line(mark: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{mark}[ \t]*$|\Z", re.MULTILINE)


def bare(kind: str, token: str) -> str:
    if kind == "quoted" and re.fullmatch(r"[\w./:@+-]+", token[1:-1]):
        return token[1:-1]
    return {"quoted": "\x01", "escaped": "\x01", "joint": " "}.get(kind, token)


def label_of(words: list[str]) -> str:
    words = unwrapped(words)
    if not words:
        return ""
    program = words[0].replace("\\", "/").split("/")[-1].lower().removesuffix(".exe")
    program, rest = "test" if program in ("[", "[[") else program, words[1:]
    if re.fullmatch(r"(python|pypy)(\d(\.\d+)?)?", program):
        options = len(rest) - len(without_options(rest, "-X -W"))
        module = rest.index("-m") + 1 if "-m" in rest[:options] else len(rest)
        return (label_of(rest[module:]) if module < len(rest) else "") or "python"
    is_run = rest and (commands.RUNNERS.get(program) == 0 or rest[0] in commands.RUN_WORDS)
    if program in commands.RUNNERS and is_run:
        valued = VALUED.get(program, "")
        return label_of(without_options(rest[commands.RUNNERS[program] :], valued))
    if not is_name(program) or program in commands.NO_PROGRAM:
        return ""
    return subcommand(program, rest) if program in commands.WITH_SUBCOMMAND else program


def is_name(word: str) -> bool:
    return re.fullmatch("[a-z0-9_][a-z0-9_.+-]{0,23}", word) is not None


def without_options(words: list[str], valued: str = "") -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in valued.split() else 1 :]
    return words


def unwrapped(words: list[str]) -> list[str]:
    while words:
        word = words[0]
        if word in commands.WRAPPERS | commands.COUNTED_WRAPPERS:
            words = without_options(words[1:], VALUED.get(word, ""))
            words = words[1:] if word in commands.COUNTED_WRAPPERS else words
        elif re.match(r"[A-Za-z_]\w*=", word):
            words = words[1:]
        else:
            break
    return words


def subcommand(program: str, rest: list[str]) -> str:
    if program == "node" and "--test" in rest:
        return "node --test"
    if program == "pacman" and [word for word in rest if word.startswith("-S")]:
        return "pacman -s"
    rest = without_options(rest, "-C -c -f -n --prefix")
    while rest and (rest[0].startswith("+") or rest[0].isdigit()):
        rest = without_options(rest[1:], "-C -c -f -n --prefix")
    if not rest or not is_name(rest[0].lower()):
        return program
    word, after = rest[0].lower(), [*rest[1:], ""][0]
    script = [*without_options(rest[1:]), ""][0]
    if program in ("npm", "pnpm", "yarn", "bun") and word in ("run", "exec") and script:
        return f"{program} run {script.lower().split(':')[0][:24]}"
    if program == "uv" and word == "pip" and after:
        return f"uv pip {after.lower()[:24]}"
    is_list = after in ("-l", "-n", "--list", "list", "show") or (word == "tag" and not after)
    is_listed = program == "git" and word in ("tag", "stash") and is_list
    return f"git {word} list" if is_listed else f"{program} {word}"


# --- counts ------------------------------------------------------------------------------


def each(rows: list[MessageRow]) -> Events:
    return [(row, 1) for row in rows]


def made(talk: Talk, *operations: str) -> Events:
    return each([call.row for call in calls(talk, *operations)])


def acted(talk: Talk, operation: str, actions: str) -> Events:
    found = []
    for call in calls(talk, operation):
        action = call.arguments.get("action")
        if isinstance(action, str) and action.lower() in actions.split():
            found.append(call.row)
    return each(found)


def running(talk: Talk, wanted: frozenset[str]) -> Events:
    return each([call.row for call in calls(talk, tools.SHELL) if wanted & {*labels(call)}])


def running_program(talk: Talk, wanted: frozenset[str]) -> Events:
    ran_here = [(c.row, {label.split(" ")[0] for label in labels(c)}) for c in calls(talk, "shell")]
    return each([row for row, programs in ran_here if wanted & programs])


def answers(talk: Talk, is_wanted: Callable[[Result], object]) -> Events:
    return each([result.row for result in results(talk) if is_wanted(result)])


def is_shell(result: Result) -> bool:
    return does(result.tool) == tools.SHELL


def test_passed(result: Result) -> bool:
    return won(result, command_kinds.TESTS)


def test_failed(result: Result) -> bool:
    return lost(result, command_kinds.TESTS)


def began_between(talk: Talk, first: int, end: int) -> Events:
    return each([row for row in began(talk) if first <= local(talk, row).hour < end])


def returned(talk: Talk, days: int) -> Events:
    return each([row for row, gap in gaps(talk) if gap >= days * 86400 and row in said(talk)])


def changed(talk: Talk) -> list[tuple[MessageRow, tuple[str, str]]]:
    """Files written or edited: in which message, and their extension and path."""
    return [(c.row, file) for c in calls(talk, tools.WRITE, tools.EDIT) for file in files(c)]


def first_of_each(found: list[tuple[MessageRow, Any]]) -> Events:
    values = [value for _, value in found]
    return [(row, 1) for n, (row, value) in enumerate(found) if value not in values[:n]]


def handed_on(talk: Talk) -> Events:
    found = [(c.row, c.arguments.get("tasks")) for c in calls(talk, tools.DELEGATE)]
    return [(row, len(tasks) if isinstance(tasks, list) and tasks else 1) for row, tasks in found]


def recovered(talk: Talk) -> Events:
    found = results(talk)
    rows = []
    for position, result in enumerate(found):
        before = [one for one in found[:position] if one.tool == result.tool]
        if not result.has_failed and before and before[-1].has_failed:
            rows.append(result.row)
    return each(rows)


def after_failures(found: list[Result], least: int) -> Events:
    """Successes after at least so many failures in a row, with their number."""
    events: Events = []
    for position, result in enumerate(found):
        run = 0
        while run < position and found[position - 1 - run].has_failed:
            run += 1
        if not result.has_failed and run >= least:
            events.append((result.row, run))
    return events


def in_order(talk: Talk, *steps: Callable[[Result], object]) -> Events:
    """Once each time all steps were taken in order; one result may take several."""
    remaining, rows = [*steps], []
    for result in results(talk):
        while remaining and remaining[0](result):
            remaining.pop(0)
        if not remaining:
            remaining = [*steps]
            rows.append(result.row)
    return each(rows)


def passed(label: str) -> Callable[[Result], object]:
    return lambda result: won(result, frozenset({label}))


def fixed_quickly(talk: Talk) -> Events:
    """A test passes, the last test run before it failed, and something was edited between."""
    rows, is_edited, failed = [], False, None
    for result in results(talk):
        if test_failed(result):
            failed, is_edited = result, False
        elif test_passed(result):
            if failed and is_edited and result.row.at - failed.row.at <= 300:
                rows.append(result.row)
            failed = None
        elif does(result.tool) in (tools.EDIT, tools.WRITE) and not result.has_failed:
            is_edited = True
    return each(rows)


def read_before_edited(talk: Talk) -> Events:
    found = calls(talk, tools.READ, tools.EDIT)
    edits = []
    for position, call in enumerate(found):
        if does(call.tool) == tools.EDIT:
            before = [one for one in found[:position] if does(one.tool) == tools.READ]
            read = [file for one in before for file in files(one)]
            edits += [(call.row, file) for file in files(call) if file in read]
    return first_of_each(edits)


def researched(talk: Talk) -> Events:
    found = calls(talk, tools.WEB_SEARCH, tools.PAGE, tools.WRITE, tools.EDIT)
    sources = [does(call.tool) in (tools.WEB_SEARCH, tools.PAGE) for call in found]
    rows = [c.row for n, c in enumerate(found) if not sources[n] and sum(sources[:n]) >= 3]
    return each(rows[:1])


def recalled(talk: Talk) -> Events:
    fine = [result for result in results(talk) if not result.has_failed]
    rows = []
    for position, result in enumerate(fine):
        is_change = does(result.tool) in (tools.WRITE, tools.EDIT) or passed("git commit")(result)
        if is_change and any(does(one.tool) == tools.RECALL for one in fine[:position]):
            rows.append(result.row)
    return each(rows[:1])


def flawless(talk: Talk) -> Events:
    found = results(talk)
    return [] if any(one.has_failed for one in found) else each([one.row for one in found[24:25]])


def amount(talk: Talk, number: float) -> Events:
    return [(row, round(number)) for row in last(talk) if round(number) > 0]


def read_tokens(talk: Talk) -> int:
    return talk.row.input_tokens + talk.row.cached_tokens


COUNTS: dict[str, Callable[[Talk], Events]] = {
    "messages_sent": lambda t: each(said(t)),
    "characters_typed": lambda t: [(row, row.length) for row in said(t) if row.length],
    "long_messages": lambda t: each([row for row in said(t) if row.length >= 2000]),
    "short_messages": lambda t: each([row for row in said(t) if 1 <= row.length <= 12]),
    "replies": lambda t: each(replies(t)) if is_spoken_to(t) else [],
    "conversations": lambda t: each(began(t)),
    "branches": lambda t: each(began(t)) if t.row.kind == "branch" else [],
    "continuations": lambda t: each(t.rows[:1]) if t.row.kind == "continuation" else [],
    "subagent_runs": lambda t: each(last(t)) if t.row.kind == "subagent" else [],
    "scheduled_runs": lambda t: each(last(t)) if t.row.kind == "scheduled" else [],
    "titled": lambda t: each(began(t)) if t.row.is_titled else [],
    "clean_ends": lambda t: (
        each(last(t))
        if began(t) and t.row.ended_at is not None and t.row.end_reason in CLEAN.split()
        else []
    ),
    "returns_after_week": lambda t: returned(t, 7),
    "returns_after_month": lambda t: returned(t, 30),
    "weekend_conversations": lambda t: each([r for r in began(t) if local(t, r).weekday() > 4]),
    "night_conversations": lambda t: began_between(t, 0, 5),
    "dawn_conversations": lambda t: began_between(t, 5, 7),
    "lunch_conversations": lambda t: began_between(t, 12, 13),
    "evening_conversations": lambda t: began_between(t, 20, 24),
    "active_seconds": lambda t: [
        (row, int(gap)) for row, gap in gaps(t) if is_spoken_to(t) and 1 <= gap <= 300
    ],
    "pure_talks": lambda t: each(said(t)[9:10]) if is_conversation(t) and not calls(t) else [],
    "one_shots": lambda t: (
        each(replies(t)[-1:])
        if is_conversation(t) and len(said(t)) == 1 and len(calls(t)) >= 10
        else []
    ),
    "tool_calls": lambda t: each([call.row for call in calls(t)]),
    "parallel_batches": lambda t: each([row for row in t.rows if len(calls_of(row)) >= 3]),
    "tools_in_session": lambda t: first_of_each([(c.row, c.tool) for c in calls(t)]),
    "shell_commands": lambda t: made(t, tools.SHELL),
    "background_jobs": lambda t: running(t, frozenset("&")),
    "files_read": lambda t: made(t, tools.READ),
    "files_written": lambda t: made(t, tools.WRITE),
    "files_edited": lambda t: made(t, tools.EDIT),
    "file_searches": lambda t: made(t, tools.FIND),
    "files_touched": lambda t: first_of_each(changed(t)),
    "languages_in_session": lambda t: first_of_each([(r, f[0]) for r, f in changed(t) if f[0]]),
    "web_searches": lambda t: made(t, tools.WEB_SEARCH),
    "pages_read": lambda t: made(t, tools.PAGE),
    "browser_steps": lambda t: made(t, tools.BROWSER),
    "delegations": handed_on,
    "jobs_scheduled": lambda t: acted(t, tools.SCHEDULE, "create add schedule"),
    "memories_saved": lambda t: acted(t, tools.MEMORY, "add replace remember write save append"),
    "history_searches": lambda t: made(t, tools.RECALL),
    "images_made": lambda t: made(t, tools.DRAW),
    "images_seen": lambda t: made(t, tools.SEE),
    "voices_made": lambda t: made(t, tools.SPEAK),
    "code_runs": lambda t: made(t, tools.CODE),
    "skills_used": lambda t: made(t, tools.SKILL),
    "skills_written": lambda t: acted(
        t, tools.SKILL_WRITE, "create edit patch write_file update add"
    ),
    "plans": lambda t: made(t, tools.PLAN),
    "questions_asked": lambda t: made(t, tools.ASK),
    "mcp_calls": lambda t: made(t, tools.MCP),
    "commits": lambda t: running(t, frozenset({"git commit"})),
    "pushes": lambda t: running(t, frozenset({"git push"})),
    "merges": lambda t: running(t, command_kinds.MERGES),
    "git_rescues": lambda t: running(t, command_kinds.RESCUES),
    "git_tags": lambda t: running(t, frozenset({"git tag"})),
    "test_runs": lambda t: running(t, command_kinds.TESTS),
    "installs": lambda t: running(t, command_kinds.INSTALLS),
    "builds": lambda t: running(t, command_kinds.BUILDS),
    "checks": lambda t: running(t, command_kinds.CHECKS),
    "container_commands": lambda t: running_program(t, command_kinds.CONTAINERS),
    "deploys": lambda t: running_program(t, command_kinds.DEPLOYERS),
    "database_commands": lambda t: running_program(t, command_kinds.DATABASES),
    "http_requests": lambda t: running_program(t, command_kinds.REQUESTERS),
    "remote_commands": lambda t: running_program(t, command_kinds.REMOTES),
    "successful_calls": lambda t: answers(t, lambda r: not r.has_failed),
    "failed_calls": lambda t: answers(t, lambda r: r.has_failed),
    "failed_commands": lambda t: answers(t, lambda r: r.has_failed and is_shell(r)),
    "missing_commands": lambda t: answers(t, lambda r: is_shell(r) and r.exit_code == 127),
    "interrupted_commands": lambda t: answers(
        t, lambda r: is_shell(r) and r.exit_code in (124, 130, 137, 143)
    ),
    "tracebacks": lambda t: answers(t, lambda r: r.has_trace),
    "passed_tests": lambda t: answers(t, test_passed),
    "failed_tests": lambda t: answers(t, test_failed),
    "recovered_calls": recovered,
    "stubborn_recoveries": lambda t: [(row, 1) for row, _ in after_failures(results(t), 10)],
    "test_comebacks": lambda t: [
        (row, 1)
        for row, _ in after_failures([r for r in results(t) if test_failed(r) or test_passed(r)], 5)
    ],
    "red_green_commits": lambda t: in_order(
        t,
        test_failed,
        test_passed,
        passed("git commit"),
    ),
    "shipped": lambda t: in_order(
        t,
        test_passed,
        passed("git commit"),
        passed("git push"),
    ),
    "quick_fixes": fixed_quickly,
    "careful_edits": read_before_edited,
    "researched_writes": researched,
    "recalled_work": recalled,
    "flawless_sessions": flawless,
    "input_tokens": lambda t: amount(t, t.row.input_tokens),
    "output_tokens": lambda t: amount(t, t.row.output_tokens),
    "cached_tokens": lambda t: amount(t, t.row.cached_tokens),
    "reasoning_tokens": lambda t: amount(t, t.row.reasoning_tokens),
    "cost_cents": lambda t: amount(t, t.row.cost_usd * 100),
    "well_cached": lambda t: (
        each(last(t))
        if read_tokens(t) >= 50_000 and t.row.cached_tokens >= 0.8 * read_tokens(t)
        else []
    ),
}


# --- peaks and variety -------------------------------------------------------------------


def clean_runs(talk: Talk) -> Events:
    found = results(talk)
    events: Events = []
    for position, result in enumerate(found):
        run = 0
        while run <= position and not found[position - run].has_failed:
            run += 1
        events.append((result.row, run))
    return events


def notable(talk: Talk) -> list[tuple[MessageRow, str]]:
    found = [(row, NOTABLE.get(local(talk, row).strftime("%m-%d"), "")) for row in said(talk)]
    fridays = [row for row in said(talk) if local(talk, row).strftime("%d %w") == "13 5"]
    return [(row, name) for row, name in found if name] + [(r, "friday the 13th") for r in fridays]


PEAKS: dict[str, Callable[[Talk], Events]] = {
    "longest_message": lambda t: [(row, row.length) for row in said(t)],
    "calls_at_once": lambda t: [(row, len(calls_of(row))) for row in t.rows],
    "clean_run": clean_runs,
    "failures_overcome": lambda t: after_failures(results(t), 1),
    "days_of_silence": lambda t: [
        (row, int(gap // 86400)) for row, gap in gaps(t) if row in said(t)
    ],
    "hours_open": lambda t: [(row, int((row.at - t.rows[0].at) // 3600)) for row in said(t)],
}
VARIETY: dict[str, Callable[[Talk], list[tuple[MessageRow, str]]]] = {
    "tool_kinds": lambda t: [(call.row, call.tool) for call in calls(t)],
    "models": lambda t: [(row, model(t)) for row in t.rows[:1] if model(t)],
    "makers": lambda t: [(row, maker(t)) for row in t.rows[:1] if maker(t)],
    "places": lambda t: [(row, t.row.source) for row in said(t)[:1] if t.row.source],
    "languages": lambda t: [(row, file[0]) for row, file in changed(t) if file[0]],
    "programs": lambda t: [
        (call.row, label.split(" ")[0])
        for call in calls(t, tools.SHELL)
        for label in labels(call)
        if label != "&"
    ],
    "hours": lambda t: [(row, str(local(t, row).hour)) for row in said(t)],
    "weekdays": lambda t: [(row, str(local(t, row).weekday())) for row in said(t)],
    "months": lambda t: [(row, local(t, row).strftime("%m")) for row in said(t)],
    "notable_days": notable,
}


# --- the three kinds of metrics ----------------------------------------------------------


def count_by_day(metric: str, past: Past, zone: tzinfo) -> dict[str, int]:
    """The sum of a metric's events, for each day that has any."""
    found: dict[str, int] = defaultdict(int)
    for talk in talks(past, zone):
        for row, amount in COUNTS[metric](talk):
            found[moment(row.at, zone).date().isoformat()] += amount
    return dict(found)


def max_in_session(metric: str, past: Past, zone: tzinfo) -> int:
    """The largest sum of a metric's events in one session."""
    sums = [sum(amount for _, amount in COUNTS[metric](talk)) for talk in talks(past, zone)]
    return max(sums, default=0)


def peak(metric: str, past: Past, zone: tzinfo) -> int:
    """The largest of a metric's events."""
    found = [amount for talk in talks(past, zone) for _, amount in PEAKS[metric](talk)]
    return max(found, default=0)


def variety(metric: str, past: Past, zone: tzinfo) -> dict[str, tuple[float, str, int]]:
    """Each value with its first appearance: when, in which session, in which message."""
    found: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for talk in talks(past, zone):
        for row, value in VARIETY[metric](talk):
            found[value].append((row.at, row.id, talk.row.id))
    first = {value: min(seen) for value, seen in found.items()}
    return {value: (at, session_id, row_id) for value, (at, row_id, session_id) in first.items()}
