"""A mailbox of the agent, a user who writes to it, and the recorded inbox."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.platforms.email.adapter import EmailAdapter
from support.adapters import QUICK_BACKOFF, AdapterSetup, DictMemory
from support.mail_server import PASSWORD, MailServer, ReceivedMail, compose
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from email.message import EmailMessage
    from pathlib import Path

ANN = "ann@example.org"


class MailSetup(AdapterSetup):
    """An adapter for a new mailbox; its memory survives a restart."""

    def __init__(self, server: MailServer, folder: Path, **options: Any) -> None:
        self.server = server
        self.address = server.new_address()
        secrets = {"EMAIL_ADDRESS": self.address, "EMAIL_PASSWORD": PASSWORD}
        super().__init__(
            DictMemory(), folder, secrets, server.options(**options), max_bytes=1_000_000
        )

    def adapter(self) -> EmailAdapter:
        return EmailAdapter(self.context(), backoff=QUICK_BACKOFF)

    async def write(
        self, text: str, sender: str = ANN, envelope_sender: str = "", **headers: str
    ) -> EmailMessage:
        """Send a message to the agent."""
        message = compose(sender, self.address, text, **headers)
        await self.send(message, envelope_sender)
        return message

    async def send(self, message: EmailMessage, envelope_sender: str = "") -> None:
        await asyncio.to_thread(self.server.send, message, envelope_sender)

    def deliver(self, content: bytes) -> None:
        """Put bytes into the mailbox as they are."""
        self.server.smtp.deliver(self.address, content)

    @property
    def answers(self) -> list[ReceivedMail]:
        mails = self.server.smtp.received
        return [mail for mail in mails if self.address in str(mail.content["From"])]

    async def wait_for_answers(self, count: int) -> list[ReceivedMail]:
        await async_wait_until(lambda: len(self.answers) >= count)
        return self.answers
