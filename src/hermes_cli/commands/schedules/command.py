"""`hermes cron`: scheduled jobs and reminders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from hermes_cli.parser import add_command, add_json_option

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_cli.parser import Run

EXAMPLES: Final = """\
examples:
  hermes cron add "every weekday 8:00" "Summarize my calendar" --to telegram:me
  hermes cron add "in 20 minutes" "Take out the bread" --reminder --to telegram:me
  hermes cron                           list the scheduled jobs
  hermes cron history 3                 list the runs of job 3

The gateway runs the jobs (`hermes gateway start`). Schedules are five cron fields ("0 8 * * 1-5"),
"every weekday 8:00", "every monday and friday 9:00", "every 2 hours", "daily 7:30",
"every month on day 1 9:00", "in 20 minutes", "tomorrow 9:00", "2026-12-24 18:00".
"""
ACTION_EXAMPLES: Final = {
    "add": """\
examples:
  hermes cron add "every weekday 8:00" "Summarize my calendar" --to telegram:me
  hermes cron add "0 22 * * 5" "Write the weekly report" --tz Europe/Berlin --catch-up skip
  hermes cron add "tomorrow 9:00" "Call Ada" --reminder --to me

CHAT is PLATFORM:CHAT, PLATFORM:me or me for your own chat, or the name of a chat (see
`hermes gateway channels`). Without --to the result is only stored as a conversation.
""",
    "edit": 'examples:\n  hermes cron edit 3 --schedule "daily 7:30"\n'
    '  hermes cron edit 3 --prompt "Summarize my mail" --to me\n',
    "list": "examples:\n  hermes cron list\n  hermes cron list --all --json\n",
    "show": "examples:\n  hermes cron show 3\n  hermes cron show 3 --json\n",
    "history": "examples:\n  hermes cron history\n  hermes cron history 3 --limit 100 --json\n",
    "pause": "examples:\n  hermes cron pause 3\n",
    "resume": "examples:\n  hermes cron resume 3\n",
    "run": "examples:\n  hermes cron run 3\n",
    "remove": "examples:\n  hermes cron remove 3\n",
    "import": "examples:\n  hermes cron import --dry-run\n  hermes cron import\n",
}
# Module and function of each action, loaded when it runs.
RUNNERS: Final = {
    "list": ("display", "show_list"),
    "show": ("display", "show"),
    "history": ("display", "show_history"),
    "add": ("changes", "add"),
    "edit": ("changes", "edit"),
    "pause": ("changes", "pause"),
    "resume": ("changes", "resume"),
    "run": ("changes", "run_now"),
    "remove": ("changes", "remove"),
    "import": ("original", "run"),
}
CATCH_UP_HELP: Final = (
    "occurrences missed while the gateway was down: run once for all of them (default), each, "
    "or none"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_json_option(parser)
    parser.set_defaults(run=_loaded(*RUNNERS["list"]), all=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")

    def action(name: str, purpose: str) -> argparse.ArgumentParser:
        child = add_command(actions, name, purpose, ACTION_EXAMPLES[name], has_json=True)
        child.set_defaults(run=_loaded(*RUNNERS[name]), action=name)
        return child

    adding = action("add", "schedule a job or a reminder")
    adding.add_argument("schedule", metavar="SCHEDULE", help="when to run it")
    adding.add_argument("prompt", metavar="TEXT", help="prompt for the agent, or text to send")
    _add_job_options(adding)
    editing = action("edit", "change a job")
    _add_number(editing)
    editing.add_argument("--schedule", metavar="SCHEDULE", help="when to run it")
    editing.add_argument("--prompt", metavar="TEXT", help="prompt for the agent, or text to send")
    _add_job_options(editing)
    listing = action("list", "list the scheduled jobs")
    listing.add_argument("--all", action="store_true", help="include completed jobs")
    _add_number(action("show", "show a job and its next occurrences"))
    history = action("history", "list runs with their state and cost")
    history.add_argument("number", type=int, nargs="?", metavar="NUMBER", help="job number")
    history.add_argument(
        "--limit", type=int, default=20, metavar="N", help="maximum number of runs (default: 20)"
    )
    _add_number(action("pause", "pause a job"))
    _add_number(action("resume", "resume a paused job at its next occurrence"))
    _add_number(action("run", "run a job now"))
    _add_number(action("remove", "delete a job; its conversations are kept"))
    importing = action("import", "import jobs from hermes-agent")
    importing.add_argument("--dry-run", action="store_true", help="only show what would be done")


def _loaded(module: str, name: str) -> Run:
    """A function of a module of this folder, which is imported when it is called."""

    def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
        loaded = import_module(f"hermes_cli.commands.schedules.{module}")
        return cast("Run", getattr(loaded, name))(arguments, out)

    return run


def _add_number(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=int, metavar="NUMBER", help="job number, as listed")


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="CHAT", help="chat to send the result to, or `none`")
    parser.add_argument("--tz", metavar="ZONE", help="time zone, e.g. Europe/Berlin")
    parser.add_argument("--catch-up", choices=("once", "all", "skip"), help=CATCH_UP_HELP)
    parser.add_argument("--model", metavar="NAME", help="use this model")
    parser.add_argument("--name", metavar="NAME", help="name in lists and notices")
    parser.add_argument("--once", action="store_true", help="run once, at the next occurrence")
    parser.add_argument(
        "--reminder", action="store_true", help="send TEXT as it is, without the agent"
    )
