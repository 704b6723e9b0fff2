"""What requests need of the messages of a conversation, computed once for each message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.context.result_images import image_in
from hermes_agent.context.window import message_tokens, shorten

if TYPE_CHECKING:
    from hermes_agent.messages import Message


class PreparedMessages:
    """The messages of a conversation as they are sent, and their estimated size.

    A conversation only grows, except when it is compacted or edited: then all are prepared again.
    """

    def __init__(self) -> None:
        self._characters = 0  # maximum of a tool result
        self._last: Message | None = None
        self.messages: list[Message] = []  # with long results shortened
        self.tokens = 0
        self.may_have_images = False

    def update(self, messages: list[Message], characters: int) -> None:
        """Prepare the messages that were added since the last call."""
        count = len(self.messages)
        is_continued = (
            characters == self._characters
            and len(messages) >= count
            and (count == 0 or messages[count - 1] is self._last)
        )
        if not is_continued:
            self._characters, self.messages, self.tokens, count = characters, [], 0, 0
            self.may_have_images = False
        added = [shorten(message, characters) for message in messages[count:]]
        self.messages += added
        self.tokens += sum(map(message_tokens, added))
        self.may_have_images |= any(map(_may_have_image, added))
        self._last = messages[-1] if messages else None


def _may_have_image(message: Message) -> bool:
    return not isinstance(message.get("content"), str) or bool(image_in(message))
