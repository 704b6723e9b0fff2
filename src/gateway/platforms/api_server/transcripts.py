"""Hashes of transcripts, by which a conversation of a stateless client is recognised.

The hash of a transcript is made of the hash of all but its last message and of that message, so
that the answer of a request can be added to the hash of the request.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.platforms.api_server.requests import ApiMessage


def chain(messages: Iterable[ApiMessage], start: str = "") -> list[str]:
    """The hash of each beginning of a transcript, the shortest first."""
    hashes, last = [], start
    for message in messages:
        files = "".join(_file_digest(file.data, file.name) for file in message.files)
        last = _add(last, message.role, message.text, files)
        hashes.append(last)
    return hashes


def with_answer(asked: str, text: str) -> str:
    """The hash of a transcript with the answer to it."""
    return _add(asked, "assistant", text)


def _add(before: str, role: str, text: str, files: str = "") -> str:
    # Clients trim answers and change line breaks.
    content = f"{before}\n{role}\n{files}\n{' '.join(text.split())}"
    return hashlib.sha256(content.encode(errors="replace")).hexdigest()


def _file_digest(data: bytes | None, name: str) -> str:
    return hashlib.sha256(data if data is not None else name.encode(errors="replace")).hexdigest()
