"""The name under which the user started Hermes, for hints that name a command.

The launcher of a checkout exports it as HERMES_COMMAND: `./hermes`, or `hermes` where that
is found on PATH. An installed package leaves the variable unset.
"""

from __future__ import annotations

import os
import re
from typing import Final

COMMAND_VARIABLE: Final = "HERMES_COMMAND"
DEFAULT_NAME: Final = "hermes"
# Text in quotation marks, which may be the user's; "$(hermes …)" is a command.
_QUOTED: Final = (
    r"""(?<!\w)(?:'(?:\\.|[^'\\\n]|'(?=\w)){0,1000}'|"(?!\$\()(?:\\.|[^"\\\n]){0,1000}")(?!\w)"""
)
# The first words of commands after a colon or a bracket, where other text may say `hermes` too.
_FIRST_WORDS: Final = (
    "config|cron|gateway|import|mcp|models|permissions|search|sessions|setup|store|trust|-p"
)
# The command in code (`hermes setup`, $(hermes …), … | hermes), in the columns of examples, and
# after a colon or a bracket; variables may precede it.
_COMMAND: Final = (
    r"((?:`|  |\| |\$\()(?:[A-Z_]+=\S+ )?)hermes(?=[ `\n]|$)"
    rf"|((?:: |\()(?:[A-Z_]+=\S+ )?)hermes(?= (?:{_FIRST_WORDS})\b)"
)


def command_name() -> str:
    """What the user types to start Hermes."""
    name = os.environ.get(COMMAND_VARIABLE)
    if not name:
        return DEFAULT_NAME
    import shlex  # noqa: PLC0415 - most commands print no hint

    return shlex.quote(name)


def terminal_command(*arguments: str) -> str:
    """A command line for any terminal, in any folder, with HERMES_HOME if it is not the default."""
    import shlex  # noqa: PLC0415 - most commands print no hint
    from pathlib import Path  # noqa: PLC0415 - as above

    from hermes_core import paths  # noqa: PLC0415 - as above

    home = paths.hermes_home()
    variable = "" if home == paths.default_home() else f"HERMES_HOME={shlex.quote(str(home))} "
    name = os.environ.get(COMMAND_VARIABLE) or DEFAULT_NAME
    program = str(Path(name).absolute()) if "/" in name else name
    return f"{variable}{shlex.join([program, *arguments])}"


def with_command_name(text: str) -> str:
    """*text*, a message of Hermes, with its commands as the user types them."""
    name = command_name()
    if name == DEFAULT_NAME:
        return text
    return re.sub(f"{_QUOTED}|{_COMMAND}", lambda found: _renamed(found, name), text)


def _renamed(found: re.Match[str], name: str) -> str:
    before = found[1] or found[2]
    return f"{before}{name}" if before else found[0]
