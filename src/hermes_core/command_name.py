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
# The command in code (`hermes setup`, $(hermes …), … | hermes), in the columns of examples, and
# after a colon or a bracket; variables may precede it.
_COMMAND: Final = (
    r"((?:`|  |\| |\$\()(?:[A-Z_]+=\S+ )?)hermes(?=[ `\n]|$)"
    r"|((?:: |\()(?:[A-Z_]+=\S+ )?)hermes(?= [a-z])"
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
    return re.sub(_COMMAND, lambda found: f"{found[1] or found[2]}{name}", text)
