"""Asking before something is changed that is hard to change back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_cli.output import Output


def confirm(question: str, out: Output, *, is_sure: bool) -> bool:
    """Whether the user says yes; without a terminal to ask on, --yes has to be given."""
    if is_sure:
        return True
    if not (sys.stdin.isatty() and out.is_terminal):
        raise UsageError(f"{question} There is nobody to ask here; say --yes if you are sure.")
    out.flush()
    answer = input(f"{question} [y/N] ")
    return answer.strip().lower() in ("y", "yes")
