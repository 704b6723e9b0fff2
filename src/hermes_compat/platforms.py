"""Connects an adapter of hermes-agent to the gateway."""

from __future__ import annotations

import functools
import os
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gateway.platforms.base import Abilities, ErrorKind, SendResult, split_text
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError, PlatformDownError, PlatformRefusedError
from hermes_core.isolate import Failure, attempt_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.config import PlatformConfig
    from gateway.platforms.base import AdapterContext, MessageEvent, OutgoingMessage, Receive
    from gateway.platforms.quarantine import Quarantine
    from hermes_compat.plugins.platform import OriginalPlatform


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


DEFAULT_LENGTH: Final = 4000


def connect_original(platform: OriginalPlatform, context: AdapterContext) -> OriginalConnection:
    """Create the adapter of a platform; PlatformRefusedError if something is missing."""
    _export_secrets(platform, context)
    hint = f" {platform.install_hint}" if platform.install_hint else ""
    if platform.check_fn is not None and not platform.check_fn():
        raise PlatformRefusedError(f"{platform.label}: its requirements are not met.{hint}")
    found = platform.env_enablement_fn() if platform.env_enablement_fn is not None else None
    config = context.config
    config.extra = {**(found if isinstance(found, dict) else {}), **config.extra}
    if platform.validate_config is not None and not platform.validate_config(config):
        raise PlatformRefusedError(f"{platform.label}: its configuration is not valid.{hint}")
    Platform.registered(platform.name)
    adapter = platform.adapter_factory(config)
    if adapter is None:
        raise PlatformRefusedError(f"{platform.label}: the plugin created no adapter.{hint}")
    has_edit = _overrides(adapter, "edit_message")
    kind = EditingConnection if has_edit else OriginalConnection
    return kind(adapter, platform, context.quarantine)


def _export_secrets(platform: OriginalPlatform, context: AdapterContext) -> None:
    """Put the secrets of a platform where its adapter reads them; commands do not get them."""
    for name in platform.required_env:
        value = context.secret(name)
        if value:
            os.environ.setdefault(name, value)


def _overrides(adapter: Any, method: str) -> bool:
    own = getattr(type(adapter), method, None)
    return own is not None and own is not getattr(BasePlatformAdapter, method)


class OriginalConnection:
    """An adapter of the gateway that calls one of hermes-agent."""

    def __init__(self, adapter: Any, platform: OriginalPlatform, quarantine: Quarantine) -> None:
        self._adapter = adapter
        self._quarantine = quarantine
        self._storage_error = ""  # of the last message
        self._label = platform.label
        longest = platform.max_message_length or getattr(adapter, "MAX_MESSAGE_LENGTH", 0)
        self.abilities = Abilities(
            edit=_overrides(adapter, "edit_message"),
            typing=_overrides(adapter, "send_typing"),
            files=_overrides(adapter, "send_document"),
            threads=True,
            longest_text=longest or DEFAULT_LENGTH,
        )
        self.account = str(getattr(adapter, "account", "") or platform.name)

    @property
    def problem(self) -> str:
        """Why the connection does not work; empty while it works."""
        return str(getattr(self._adapter, "fatal_error", "") or self._storage_error)

    async def connect(self, receive: Receive) -> None:
        """Start listening."""
        self._adapter.set_message_handler(functools.partial(self._handle, receive))
        is_connected = await self._adapter.connect()
        if is_connected is False:
            reason = self.problem or "could not connect"
            is_final = self.problem and not self._adapter.is_fatal_retryable
            kind = PlatformRefusedError if is_final else PlatformDownError
            raise kind(f"{self._label}: {reason}")

    async def _handle(self, receive: Receive, event: MessageEvent) -> None:
        """Store a message, or set it aside: an adapter may drop the exceptions that it gets."""
        message_id = event.message_id = event.message_id or uuid.uuid4().hex
        result = await attempt_async(f"receive from {self._label}", receive(event))
        self._storage_error = ""
        if not isinstance(result, Failure):
            return
        error = f"{type(result.error).__name__}: {result.error}"
        if isinstance(result.error, HermesError | OSError):  # not the fault of the message
            self._storage_error = f"a message was not stored: {error}"
            raise result.error
        content = {"text": event.text, "source": event.source}
        await self._quarantine(message_id, content, error)

    async def disconnect(self) -> None:
        """Stop listening."""
        await self._adapter.disconnect()

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file."""
        metadata = {"thread_id": outgoing.thread_id} if outgoing.thread_id else None
        if outgoing.file is not None:
            return await self._sent(
                self._adapter.send_document(
                    outgoing.chat_id,
                    str(outgoing.file),
                    caption=outgoing.text or None,
                    reply_to=outgoing.reply_to,
                    metadata=metadata,
                )
            )
        return await self._sent(
            self._adapter.send(
                outgoing.chat_id, outgoing.text, reply_to=outgoing.reply_to, metadata=metadata
            )
        )

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show the typing indicator."""
        metadata = {"thread_id": thread_id} if thread_id else None
        await self._adapter.send_typing(chat_id, metadata=metadata)

    async def _sent(self, call: Awaitable[Any]) -> SendResult:
        """The result of a call; after an exception the message may have arrived."""
        result = await attempt_async(f"send by {self._label}", call)
        if isinstance(result, Failure):
            text = f"{type(result.error).__name__}: {result.error}"
            return SendResult(
                success=False, error=text, error_kind=ErrorKind.UNKNOWN, may_have_arrived=True
            )
        if isinstance(result, SendResult):
            return result
        return SendResult(
            success=bool(getattr(result, "success", result)),
            message_id=getattr(result, "message_id", None),
            error=getattr(result, "error", None),
            retryable=getattr(result, "retryable", None),
        )


class EditingConnection(OriginalConnection):
    """An adapter that can edit messages."""

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a sent message."""
        return await self._sent(
            self._adapter.edit_message(outgoing.chat_id, message_id, outgoing.text)
        )
