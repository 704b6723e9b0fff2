"""Connects an adapter of hermes-agent to the gateway."""

from __future__ import annotations

import functools
import os
import uuid
from typing import TYPE_CHECKING, Any, Final

from gateway.platforms.base import Abilities, ErrorKind, SendResult
from gateway.platforms.names import Platform
from hermes_compat.platforms.base_adapter import BasePlatformAdapter
from hermes_core.errors import HermesError, PlatformDownError, PlatformRefusedError
from hermes_core.isolate import Failure, attempt_async

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from gateway.platforms.base import AdapterContext, MessageEvent, OutgoingMessage, Receive
    from gateway.platforms.quarantine import Quarantine
    from hermes_compat.plugins.platform import OriginalPlatform

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
