"""What a person did wrong, told in the words of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hermes_core.errors import UsageError
from tui_gateway.frames import NOTHING_TO_DO, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def told(work: Callable[[], T]) -> T:
    """Do *work*; what a person did wrong is told in the words of the error."""
    try:
        return work()
    except UsageError as error:
        raise RpcError(NOTHING_TO_DO, str(error)) from error
