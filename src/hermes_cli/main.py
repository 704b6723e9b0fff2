"""Entry point of the process: selects the command and reports errors."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING, NoReturn

from hermes_cli.output import CommandOutput
from hermes_core.errors import HermesError, OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKEN_PIPE_EXIT_CODE = 141  # what a shell reports for a program that SIGPIPE ended
INTERRUPTED_EXIT_CODE = 130
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})
PRINT_OPTIONS = frozenset({"-p", "--print", "-q", "--question"})
TUI_OPTIONS = frozenset(
    {"-c", "--continue", "-r", "--resume", "--model", "--source", "--no-daemon", "--mode",
     "--allow", "--effort", "--max-turns", "--max-output-tokens"}
)  # fmt: skip


def entry() -> NoReturn:
    """Run the command line of this process."""
    _open_missing_streams()
    sys.exit(main(sys.argv[1:]))


def _open_missing_streams() -> None:
    """Open the null device for closed standard streams, whose numbers other files would get."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - a number


def main(arguments: Sequence[str]) -> int:
    """Run *arguments*; return the exit code."""
    out = CommandOutput()
    try:
        code = run_and_report_errors(arguments, out)
        out.flush()
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE_EXIT_CODE
    except OutputError as error:
        _discard_output()
        out.note(f"hermes: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    return code


def _discard_output() -> None:
    """Redirect stdout to the null device, so that the flush on exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_and_report_errors(arguments: Sequence[str], out: CommandOutput) -> int:
    """Run *arguments*; print a HermesError as one line."""
    try:
        return run(arguments, out)
    except OutputError:
        raise
    except HermesError as error:
        if os.environ.get("HERMES_DEBUG"):
            import traceback  # noqa: PLC0415 - rarely wanted

            out.note(traceback.format_exc())
        out.error(str(error))
        return error.exit_code
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        out.error(_disk_error_text(error))
        return 1
    except SystemExit as stop:  # argparse, after help, version or a usage error
        return int(stop.code or 0)


def _disk_error_text(error: OSError) -> str:
    """One sentence about a file that cannot be written, or read if it is not one of Hermes."""
    name = f" {error.filename}" if error.filename else " a file"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"Cannot write{name}: the disk is full. Free some space and try again."
    reason = error.strerror or str(error)
    if error.filename and not _is_of_hermes(os.fsdecode(error.filename)):
        return f"Cannot access{name}: {reason}. Check the permissions."
    return f"Cannot write{name}: {reason}. Check the permissions, or set HERMES_HOME elsewhere."


def _is_of_hermes(name: str) -> bool:
    """Whether a path is in the folder of Hermes, or a folder that contains it."""
    from pathlib import Path  # noqa: PLC0415 - rarely needed

    from hermes_core.paths import hermes_home  # noqa: PLC0415 - rarely needed

    path, home = Path(name), hermes_home()
    return path.is_relative_to(home) or home.is_relative_to(path)


def run(arguments: Sequence[str], out: CommandOutput) -> int:
    """Parse the arguments and run the command."""
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    arguments = list(arguments)
    if _starts_tui(arguments):
        arguments = ["tui", *arguments]
    arguments = _as_question(arguments)
    command = next((each for each in arguments if not each.startswith("-")), None)
    if command or not arguments:
        # The imports below may load SQLite: the process must have exactly one copy, ours.
        # `--help` and `--version` end before.
        from hermes_cli import output_settings  # noqa: PLC0415
        from hermes_compat.plugins.choice import choose_interface  # noqa: PLC0415
        from hermes_core import log_file, paths  # noqa: PLC0415
        from hermes_state.engine.sqlite import driver  # noqa: PLC0415

        driver.install()
        paths.tighten_home()
        log_file.install()
        choose_interface()
        out.is_reporting_settings = command != "config"  # it prints the problems itself
        output_settings.apply_timezone(out.warn_setting)
    if not arguments:
        from hermes_cli.commands.system import overview  # noqa: PLC0415

        return overview.show(out)

    from hermes_cli.parser import COMMANDS, build_parser  # noqa: PLC0415

    is_known = command in {each.name for each in COMMANDS}
    if command == arguments[0] and not is_known:
        code = _run_plugin_command(arguments, out)
        if code is not None:
            return code
    if not is_known or arguments[1:2] == ["show"]:
        from hermes_cli import original_commands  # noqa: PLC0415 - only for unknown names

        if original_commands.may_be_original(arguments):
            arguments = original_commands.translate(arguments)
            command = arguments[0]
    parser = build_parser(command, is_alone=command == arguments[0])
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen, out))


def _starts_tui(arguments: Sequence[str]) -> bool:
    """Whether the TUI is started: no command on a terminal, or an option of it."""
    if not arguments:
        is_able = os.environ.get("TERM", "") not in {"", "dumb"}
        return is_able and sys.stdin.isatty() and sys.stdout.isatty()
    return arguments[0].partition("=")[0] in TUI_OPTIONS and _print_option(arguments) is None


def _as_question(arguments: list[str]) -> list[str]:
    """The command line of a question, if it is one: `hermes "text"`, `-p`, piped text."""
    if not arguments:
        if sys.stdin.isatty() and sys.stdout.isatty():  # a terminal without cursor control
            return ["chat"]
        text = sys.stdin.read().strip() if _is_piped() else ""
        return ["chat", f"--question={text}"] if text else []
    first = arguments[0]
    if first.startswith("-") and (place := _print_option(arguments)) is not None:
        before, after = arguments[:place], arguments[place + 1 :]
        has_text = bool(after) and (after[0] == "-" or not after[0].startswith("-"))
        return ["chat", *before, "-q", *(after if has_text else ["-", *after])]
    is_text = not first.startswith("-") and any(letter.isspace() for letter in first)
    return ["chat", "-q", *arguments] if is_text else arguments


def _print_option(arguments: Sequence[str]) -> int | None:
    """The place of `-p` or `-q`, which may follow other options; None without one."""
    return next((at for at, each in enumerate(arguments) if each in PRINT_OPTIONS), None)


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file; neither a device nor closed."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _run_plugin_command(arguments: Sequence[str], out: CommandOutput) -> int | None:
    """Run a command of a plugin; None if no plugin provides it."""
    from hermes_core.config.yaml_reader import is_set  # noqa: PLC0415 - only for unknown names

    if not is_set("plugins.enabled"):
        return None
    from hermes_cli.commands.plugins import plugin_commands  # noqa: PLC0415 - most have no plugins

    offered = plugin_commands.find(arguments[0], out)
    return None if offered is None else offered.run(arguments[1:], out)


def _complete() -> None:
    """Print the completions that the shell requests."""
    from hermes_cli.commands.system.completion import complete  # noqa: PLC0415 - only for completion
    from hermes_cli.parser import build_parser  # noqa: PLC0415 - as above
    from hermes_state.engine.sqlite import driver  # noqa: PLC0415 - as above

    driver.install()
    complete(build_parser(None, is_complete=True))
