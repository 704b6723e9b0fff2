"""Images in tool results: a result holds a reference, and the model gets the image.

APIs accept images in messages of the user only, so that a request has the image in one after
the results. It is not stored: the history has the result with its reference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_core.media_store import REFERENCE_SCHEME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.messages import Message

IMAGE_REFERENCE_START: Final = f'"image": "{REFERENCE_SCHEME}'
CAPTION: Final = "[The images of the results above]"


def image_in(message: Message) -> str:
    """The reference to the image of a tool result; empty if there is none."""
    content = message.get("content")
    if (
        message.get("role") != "tool"
        or not isinstance(content, str)
        or IMAGE_REFERENCE_START not in content
    ):
        return ""
    try:
        document = json.loads(content)
    except ValueError:  # a shortened result
        return ""
    reference = document.get("image") if isinstance(document, dict) else None
    return reference if isinstance(reference, str) else ""


def with_result_images(messages: Iterable[Message]) -> list[Message]:
    """The messages, with the images of results after each run of them."""
    shown: list[Message] = []
    pending: list[str] = []
    for message in messages:
        if pending and message.get("role") != "tool":
            shown.append(_image_message(pending))
            pending = []
        shown.append(message)
        reference = image_in(message)
        if reference:
            pending.append(reference)
    return [*shown, _image_message(pending)] if pending else shown


def _image_message(references: list[str]) -> Message:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in references]
    return {"role": "user", "content": [{"type": "text", "text": CAPTION}, *images]}
