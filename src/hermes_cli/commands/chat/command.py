"""`hermes chat`: one question, or an interactive chat in plain text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.events import Notice
from hermes_agent.local import built_in
from hermes_agent.permissions.grants import check_rule
from hermes_cli import history
from hermes_cli.commands.chat.shutdown import ChatShutdown
from hermes_cli.commands.chat.terminal_prompter import TerminalPrompter
from hermes_cli.commands.chat.turn_printer import TurnPrinter, event_as_dict
from hermes_cli.commands.models import offer
from hermes_cli.filters import parse_positive
from hermes_cli.parser import add_conversation_options, add_json_option
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_conversation.purge_hook import keep_facts
from hermes_core.config.definitions.models import EFFORTS
from hermes_core.errors import UsageError
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_cli.commands.chat.result_format import OutputFormat
    from hermes_cli.output import CommandOutput


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for requests, reasoning and output of one run."""
    parser.add_argument(
        "--max-turns",
        type=parse_positive,
        default=0,
        metavar="N",
        help="stop after N requests to the model (setting agent.max_steps)",
    )
    parser.add_argument(
        "--effort",
        choices=EFFORTS,
        default="",
        help="how much the model reasons (setting llm.effort)",
    )
    parser.add_argument(
        "--max-output-tokens",
        type=parse_positive,
        default=0,
        metavar="N",
        help="longest answer in tokens (setting llm.max_output_tokens)",
    )


EXAMPLES = """\
examples:
  hermes chat                            start an interactive chat
  hermes chat -q "what is in this folder?"
  git diff | hermes chat -q "review this"
  hermes chat < question.txt             ask the question in a file and print the answer
  hermes chat -c                         continue the most recent conversation here
  hermes chat -r 20260105_1200 -q "and?"  continue a conversation by ID
  hermes chat --model smollm2            use the small built-in model
  hermes chat -q "hello" --output-format json | jq .text
  hermes chat -q "refactor this" --output-format stream-json --max-turns 20 --effort high
  hermes chat -q "explain this" --mode plan    change nothing
  hermes chat -q "publish it" --allow network --allow 'run: git push origin main'
"""
STDIN = "-"
NOT_INTERACTIVE = (
    "--output-format needs one question (-q, or standard input) and excludes --json; "
    "`hermes chat` without a question is interactive."
)
NO_QUESTION = 'No question given: stdin is empty and is not a terminal. Use `hermes chat -q "…"`.'


APPROVAL_NEEDED_EXIT_CODE = 3
NOBODY_ASKED = (
    "An action needed approval, and this run is not interactive. Allow it with --allow RULE, or "
    "run `hermes chat` in a terminal."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes chat`."""
    parser.add_argument(
        "-q",
        "--question",
        "--query",
        metavar="TEXT",
        help="ask one question, print the answer and exit",
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="the question, or - for standard input"
    )
    add_conversation_options(parser, "cli")
    parser.add_argument(
        "--output-format",
        choices=("text", "json", "stream-json"),
        default="text",
        help="print the answer to one question as text, one JSON object, or JSON events",
    )
    add_limit_options(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Ask the question, or start the interactive chat."""
    question = _question(arguments)
    is_structured = arguments.output_format != "text"
    if is_structured and (question is None or arguments.json):
        raise UsageError(NOT_INTERACTIVE)
    with SessionDB(purge_hook=keep_facts) as db:
        prompter = TerminalPrompter(
            out, is_interactive=sys.stdin.isatty() and not arguments.json and not is_structured
        )
        options = ConversationOptions(
            history.chosen_session(db, arguments.resume, is_latest=arguments.again),
            arguments.model,
            arguments.source,
            mode=arguments.mode,
            allow=tuple(check_rule(rule) for rule in arguments.allow),
            has_automatic_title=question is None,
            max_steps=arguments.max_turns,
            max_output=arguments.max_output_tokens,
            effort=arguments.effort,
        )
        offer.require_model(options.model, out)
        if question is None and out.is_watched and not arguments.json:
            from hermes_cli.commands.system.trust import ask_at_start  # noqa: PLC0415 - only without -q

            ask_at_start(Path.cwd(), out)
        conversation = Conversation(db, prompter, options)
        prompter.is_stopped = lambda: conversation.agent.is_stopping
        if not is_structured:
            _warn_of_demo_model(conversation, out, is_json=arguments.json)
        shutdown = ChatShutdown(conversation)
        printer = TurnPrinter(conversation, out, as_json=arguments.json)
        try:
            if question is not None:
                run_turn = (
                    _structured_turn(conversation, out, arguments.output_format)
                    if is_structured
                    else printer.run_turn
                )
                with shutdown.turn():
                    code = run_turn(_expanded(question, conversation))
                if prompter.has_refused and code == 0:
                    out.error(NOBODY_ASKED)
                    code = APPROVAL_NEEDED_EXIT_CODE
                return shutdown.code or code
            from hermes_cli.commands.chat.repl import ChatRepl  # noqa: PLC0415 - only without -q

            return ChatRepl(conversation, printer, shutdown, out).run()
        finally:
            shutdown.finish(out, is_interactive=question is None)


def _structured_turn(
    conversation: Conversation, out: CommandOutput, output_format: OutputFormat
) -> Callable[[str], int]:
    from hermes_cli.commands.chat.result_format import StructuredPrinter  # noqa: PLC0415 - seldom

    return StructuredPrinter(conversation, out, output_format).run_turn


def _expanded(question: str, conversation: Conversation) -> str:
    """The prompt of a command in a file if the question is its line."""
    if not question.startswith("/"):
        return question
    from hermes_conversation import slash_commands  # noqa: PLC0415 - most questions are none
    from hermes_conversation.prompt_commands import expand_prompt  # noqa: PLC0415 - as above

    folder = slash_commands.project_folder(conversation)
    return expand_prompt(question, slash_commands.BUILT_IN_NAMES, folder)


def _warn_of_demo_model(conversation: Conversation, out: CommandOutput, *, is_json: bool) -> None:
    """Print once per conversation that the built-in model is only a demo."""
    if conversation.agent.model != built_in.MODEL_NAME or conversation.exists:
        return
    if is_json:
        out.json_line(event_as_dict(Notice(built_in.DEMO_NOTICE)))
    else:
        out.note(built_in.DEMO_NOTICE)


def _question(arguments: argparse.Namespace) -> str | None:
    """The question with piped input; None for an interactive chat."""
    is_terminal = sys.stdin.isatty()
    words = [arguments.question or "", *arguments.words]
    takes_input = STDIN in words
    text = " ".join(word for word in words if word not in {"", STDIN})
    piped = "" if is_terminal and not takes_input else sys.stdin.read().strip()
    question = "\n\n".join(part for part in (text, piped) if part)
    if not question and (takes_input or not is_terminal):
        raise UsageError(NO_QUESTION)
    return question or None
