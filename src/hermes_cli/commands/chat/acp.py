"""`hermes acp`: the agent in editors, over the Agent Client Protocol."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hermes_acp
from hermes_cli.parser import add_json_option
from hermes_core.errors import UsageError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

PACKAGE: Final = "agent-client-protocol"
LOCK: Final = Path(hermes_acp.__file__).with_name("requirements.lock")
SDK: Final = Library("acp", "editors", "acp", LOCK, download_mb=1, disk_mb=1)
MISSING: Final = (
    "The library for editors (agent-client-protocol) is not installed. Run `hermes acp --install`."
)
EXAMPLES: Final = """\
examples:
  hermes acp --install          install the library for editors
  hermes acp --check            show whether it is installed
  hermes acp                    serve on stdin and stdout; editors start this
  acpx --agent "hermes acp" exec "what is this?"
                                the same from a terminal, with the client acpx

Configure `hermes acp` as an agent server in the editor. Turns run in the background daemon:
they continue when the editor is closed, and `hermes -c` continues the conversation.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes acp`."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--install", action="store_true", help="install the library for editors")
    what.add_argument("--check", action="store_true", help="show whether it is installed")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Serve an editor, or install or check the library."""
    if arguments.install:
        is_new = SDK.fetch(out.progress)
        out.text(f"The library for editors {'was' if is_new else 'is already'} installed.")
        return 0
    if arguments.check:
        return _check(arguments, out)
    if not SDK.is_usable():
        raise UsageError(MISSING)
    from hermes_acp import server  # noqa: PLC0415 - the library is optional, and slow to load

    if sys.stdin.isatty():
        out.note("Waiting for an editor on standard input. See docs/how-to/use-in-an-editor.md.")
    server.serve()
    return 0


def _check(arguments: argparse.Namespace, out: CommandOutput) -> int:
    version = importlib.metadata.version(PACKAGE) if SDK.is_usable() else None
    if arguments.json:
        out.json({"installed": version is not None, "version": version})
    elif version is None:
        raise UsageError(MISSING)
    else:
        out.text(f"The library for editors is installed ({PACKAGE} {version}).")
    return 0 if version is not None else 1
