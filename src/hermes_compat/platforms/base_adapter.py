"""`BasePlatformAdapter`: the class that platform plugins of hermes-agent extend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from gateway.platforms.base import ErrorKind, SendResult, split_text
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import PlatformDownError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.config import PlatformConfig
    from gateway.platforms.base import MessageEvent


class BasePlatformAdapter(ABC):
    """The connection to a platform: it sends texts, and passes messages to `handle_message`."""

    MAX_MESSAGE_LENGTH: ClassVar[int] = 4000
    supports_code_blocks: ClassVar[bool] = False
    supports_async_delivery: ClassVar[bool] = True
    splits_long_messages: ClassVar[bool] = False
    typed_command_prefix: ClassVar[str] = "/"
    enforces_own_access_policy: ClassVar[bool] = False

    def __init__(self, config: PlatformConfig, platform: Platform | str) -> None:
        self.config = config
        self.platform = (
            platform if isinstance(platform, Platform) else Platform.registered(platform)
        )
        self.fatal_error = ""
        self.is_fatal_retryable = True
        self._is_connected = False
        self._message_handler: Callable[[MessageEvent], Awaitable[Any]] | None = None

    # What a platform implements

    @abstractmethod
    async def connect(self) -> bool:
        """Start listening; whether it listens."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Stop listening."""

    @abstractmethod
    async def send(
        self,
        chat_id: str,
        content: str,
        reply_to: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> SendResult:
        """Send a text."""

    @abstractmethod
    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        """Name and type of a chat; not called here."""

    # What it may implement

    async def edit_message(
        self, chat_id: str, message_id: str, content: str, **options: Any
    ) -> SendResult:
        """Replace the text of a message."""
        del chat_id, message_id, content, options
        return _unsupported("edit")

    async def send_typing(self, chat_id: str, metadata: dict[str, Any] | None = None) -> None:
        """Show the typing indicator."""

    async def stop_typing(self, chat_id: str) -> None:
        """Hide it; not called here: an indicator ends automatically."""

    async def send_document(
        self, chat_id: str, file_path: str, caption: str | None = None, **options: Any
    ) -> SendResult:
        """Send a file."""
        del chat_id, file_path, caption, options
        return _unsupported("send files")

    def format_message(self, content: str) -> str:
        """A text as the platform shows it."""
        return content

    # What it uses

    @property
    def name(self) -> str:
        """The name of the platform, for messages."""
        return self.platform.value.title()

    @property
    def is_connected(self) -> bool:
        """Whether it is connected."""
        return self._is_connected

    def set_message_handler(self, handler: Callable[[MessageEvent], Awaitable[Any]]) -> None:
        """Pass messages to a function from now on."""
        self._message_handler = handler

    async def handle_message(self, event: MessageEvent) -> None:
        """Pass a message to the gateway; when this returns, it is stored."""
        if self._message_handler is None:
            raise PlatformDownError(f"{self.name} received a message before it was connected")
        await self._message_handler(event)

    def build_source(
        self,
        chat_id: str,
        chat_name: str | None = None,
        chat_type: str = "dm",
        user_id: str | None = None,
        user_name: str | None = None,
        thread_id: str | None = None,
        chat_topic: str | None = None,
        **fields: Any,
    ) -> SessionSource:
        """The sender and the chat of a message; fields that Hermes does not have are dropped."""
        known = {
            name: fields[name] for name in SessionSource.__dataclass_fields__ if name in fields
        }
        known.pop("role_authorized", None)  # access is decided by the gateway
        return SessionSource(
            self.platform,
            str(chat_id),
            chat_name,
            chat_type,
            None if user_id is None else str(user_id),
            user_name,
            None if thread_id is None else str(thread_id),
            chat_topic,
            **known,
        )

    @staticmethod
    def truncate_message(content: str, max_length: int = 4000) -> list[str]:
        """A text in parts that are short enough."""
        return split_text(content, max_length)

    def _mark_connected(self) -> None:
        self._is_connected, self.fatal_error = True, ""

    def _mark_disconnected(self) -> None:
        self._is_connected = False

    def _set_fatal_error(self, code: str, message: str, *, retryable: bool = False) -> None:
        self.fatal_error = message or code
        self.is_fatal_retryable = retryable
        self._is_connected = False


def _unsupported(what: str) -> SendResult:
    return SendResult(
        success=False, error=f"the platform cannot {what}", error_kind=ErrorKind.FORBIDDEN
    )
