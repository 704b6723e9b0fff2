"""The context window: how the messages fit into it, and the limits that suit its size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.plain_results import with_plain_result
from hermes_agent.events import Failed
from hermes_agent.messages import image_in, with_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.context.compaction import CompactionResult
    from hermes_agent.messages import Message, ModelRequest, ToolSchema
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.toolbox import Toolbox
    from hermes_core.json_values import JsonObject


ALL_TOOLS: Final[frozenset[str]] = frozenset()
SMALL_TOOLS: Final = frozenset({"terminal", "read_file", "write_file", "patch"})
MEDIUM_TOOLS: Final = SMALL_TOOLS | {
    "process",
    "search_files",
    "memory",
    "session_search",
    "session_read",
    "clarify",
}
WINDOW_ADVICE: Final = (
    "If its context window is larger, set it with `hermes config set llm.window TOKENS` "
    "(for Ollama, set OLLAMA_CONTEXT_LENGTH)."
)


class Profile(NamedTuple):
    """Limits for windows up to `max_tokens`."""

    name: str
    max_tokens: int
    tools: frozenset[str]  # ALL_TOOLS means every tool
    instructions_bytes: int  # of AGENTS.md and the like
    memory_characters: int  # of each of the two memory files
    skills_characters: int
    full: float  # share of the window at which a conversation is summarized
    warning: str = ""

    def select(self, toolbox: Toolbox) -> Toolbox:
        """The tools of this profile."""
        return toolbox if self.tools == ALL_TOOLS else toolbox.only(self._names(toolbox))

    def _names(self, toolbox: Toolbox) -> list[str]:
        return [name for name in toolbox.names() if name in self.tools]


PROFILES: Final = (
    Profile(
        "small", 8_192, SMALL_TOOLS, 800, 500, 0, 0.6,
        "so it gets only the command and file tools, a short prompt, and no memory.",
    ),
    Profile(
        "medium", 32_768, MEDIUM_TOOLS, 3_000, 2_200, 0, 0.65,
        "so it gets no sub-agents, skills, MCP servers or plugin tools.",
    ),
    Profile("large", 0, ALL_TOOLS, 32_768, 4_000, 8_000, 0.7),
)  # fmt: skip


class AgentProfile(NamedTuple):
    """The prompt, the facts in it, the tools, and notices for the user."""

    prompt: str
    facts: JsonObject
    toolbox: Toolbox
    notices: tuple[str, ...] = ()


def profile_for(window: int) -> Profile:
    """The profile for a context window."""
    matching = (profile for profile in PROFILES if window <= profile.max_tokens)
    return next(matching, PROFILES[-1])


def warning_for(model: str, window: int) -> str:
    """The warning about a small context window, or an empty text."""
    profile = profile_for(window)
    if not profile.warning:
        return ""
    return (
        f"{model} has a context window of only {window:,} tokens, {profile.warning} {WINDOW_ADVICE}"
    )


def cut(text: str, characters: int, where: str) -> str:
    """The beginning of a long text, cut at a line end if possible."""
    if len(text) <= characters:
        return text
    result = text[:characters]
    result = result[: result.rfind("\n")] if "\n" in result else result
    return f"{result}\n(cut; the rest is in {where})" if result.strip() else ""


LARGE_PROFILE: Final = PROFILES[-1]


BYTES_PER_TOKEN: Final = 4  # approximate, for English text and JSON
IMAGE_TOKENS: Final = 1_500
MESSAGE_TOKENS: Final = 4  # overhead per message
RESULT_SHARE: Final = 0.2  # of the window: limit of one tool result
MIN_RESULT_CHARACTERS: Final = 400  # characters
RESERVE_SHARE: Final = 0.125  # of the window: reserved for the answer
MAX_RESERVE_TOKENS: Final = 8_192  # tokens


def tokens_in(text: str) -> int:
    """The approximate number of tokens of a text."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN


def estimate_tokens(request: ModelRequest) -> int:
    """The approximate number of tokens of a request."""
    return schema_tokens(request.tools) + sum(map(message_tokens, request.messages))


def schema_tokens(schemas: list[ToolSchema]) -> int:
    """The approximate number of tokens of tool schemas."""
    return tokens_in(json.dumps(schemas, ensure_ascii=False)) if schemas else 0


def message_tokens(message: Message) -> int:
    """The approximate number of tokens of a message."""
    calls = message.get("tool_calls")
    called = tokens_in(json.dumps(calls, ensure_ascii=False)) if calls else 0
    image = IMAGE_TOKENS if image_in(message) else 0
    return MESSAGE_TOKENS + called + image + _content(message.get("content"))


def _content(content: Any) -> int:
    if not isinstance(content, list):
        return tokens_in(str(content or ""))
    texts = [part.get("text") if isinstance(part, dict) else str(part) for part in content]
    return sum(IMAGE_TOKENS if text is None else tokens_in(str(text)) for text in texts)


def reserve(window: int) -> int:
    """The tokens reserved for the answer."""
    return min(MAX_RESERVE_TOKENS, int(window * RESERVE_SHARE))


def max_result_characters(window: int) -> int:
    """The maximum characters of a tool result for this window."""
    return max(MIN_RESULT_CHARACTERS, int(window * RESULT_SHARE) * BYTES_PER_TOKEN)


def with_short_results(messages: list[Message], characters: int) -> list[Message]:
    """The messages as they are sent, with the middle of long results omitted."""
    return [as_sent(message, characters) for message in messages]


def as_sent(message: Message, characters: int) -> Message:
    """The message as it is sent: with its note, a result as plain text and without the middle."""
    message = with_plain_result(with_note(message))
    text = message.get("content")
    if message.get("role") != "tool" or not isinstance(text, str) or len(text) <= characters:
        return message
    half = characters // 2
    omission = f"\n… ({len(text) - 2 * half:,} characters omitted: too long) …\n"
    return {**message, "content": text[:half] + omission + text[-half:]}


def newest_that_fit(messages: list[Message], tokens: int) -> list[Message]:
    """The first message and the last ones that fit into *tokens*."""
    if sum(map(message_tokens, messages)) <= tokens or not messages:
        return messages
    remaining = tokens - message_tokens(messages[0])
    tail: list[Message] = []
    for message in reversed(messages[1:]):
        remaining -= message_tokens(message)
        if remaining < 0:
            break
        tail.append(message)
    return [messages[0], *reversed(tail)]


def last_place(prompt: Message, messages: list[Message]) -> int:
    """The last place of a prompt among messages that were read again; -1 if it is not there."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "user" and message.get("content") == prompt.get("content"):
            return place
    return -1


SUMMARIZED_NOTICE: Final = (
    "Older messages were summarized to free up context; the history keeps them all."
)
SHORTENED_NOTICE: Final = (
    "Long results were shortened to free up context; the history keeps them in full."
)
REFUSED_SHARE: Final = 0.9  # of a rejected request: the assumed window
MIN_WINDOW_TOKENS: Final = 2_048  # no current model has a smaller window
SHORTEN_FACTOR: Final = 4


class ContextWindow:
    """The context window of the current model during one turn."""

    def __init__(
        self, provider: FallbackProvider, compress: Callable[[], CompactionResult | Failed]
    ) -> None:
        self._provider = provider
        self._compress = compress
        self._divisor = 1
        self._is_exhausted = False
        self._guess: tuple[Provider, int] | None = None  # the provider and its window before

    @property
    def max_characters(self) -> int:
        """The maximum length of a tool result."""
        return max_result_characters(self._provider.current.window) // self._divisor

    def shortened(self, messages: list[Message]) -> list[Message]:
        """The messages with results shortened to their limit."""
        return with_short_results(messages, self.max_characters)

    def is_exceeded_by(self, tokens: int) -> bool:
        """Whether a request of this size probably leaves too few tokens for the answer."""
        window = self._provider.current.window
        return not self._is_exhausted and tokens > window - reserve(window)

    def accept(self, tokens: int) -> None:
        """Note the size of a request that was answered: the window is not smaller."""
        provider = self._provider.current
        provider.accepted_tokens = max(provider.accepted_tokens, tokens)

    def shrink(self, refused: ModelRequest, named: int = 0) -> None:
        """Learn the window after a rejected request.

        The number that the error names is kept. Without one the window is guessed from the
        request, for this turn only. It is never smaller than a request that was answered.
        """
        provider = self._provider.current
        if named:
            provider.window = min(provider.window, max(named, provider.accepted_tokens))
            return
        likely = max(MIN_WINDOW_TOKENS, int(REFUSED_SHARE * estimate_tokens(refused)))
        guess = min(provider.window, max(likely, provider.accepted_tokens))
        if guess < provider.window and self._guess is None:
            self._guess = provider, provider.window
        provider.window = guess

    def forget_guess(self) -> None:
        """Restore the window that was known before it was guessed, after the turn."""
        if self._guess is not None:
            provider, window = self._guess
            provider.window = window
            self._guess = None

    def free_up(self) -> str:
        """Summarize or shorten; returns a notice for the user."""
        result = self._compress()
        if not isinstance(result, Failed) and result.summary:
            return SUMMARIZED_NOTICE
        self._divisor *= SHORTEN_FACTOR
        self._is_exhausted = True  # nothing more can be done in this turn
        return SHORTENED_NOTICE


LOST_RESULT_TEXT = "This call was interrupted; it is unknown whether it took effect."


def lost_result(call_id: str, name: str) -> Message:
    """The result of a call with an unknown outcome."""
    content = json.dumps({"output": "", "exit_code": None, "error": LOST_RESULT_TEXT})
    return {"role": "tool", "content": content, "tool_call_id": call_id, "tool_name": name}


def missing_results(messages: list[Message]) -> list[Message]:
    """Results to append for unanswered calls of the last message."""
    answered: set[str | None] = set()  # since the last answer: some servers repeat IDs
    for message in reversed(messages):
        if message.get("role") == "assistant":
            calls = calls_of(message)
            return [lost_result(each, name) for each, name in calls if each not in answered]
        if message.get("role") != "tool":
            break
        answered.add(message.get("tool_call_id"))
    return []


def calls_of(message: Message) -> list[tuple[str, str]]:
    """IDs and names of the calls of a message."""
    calls = message.get("tool_calls") or []
    pairs: list[tuple[str, str]] = []
    for call in calls:
        function = call.get("function")
        name = function.get("name") if function else ""
        pairs.append((str(call.get("id") or ""), str(name or "")))
    return pairs


def repaired(messages: list[Message]) -> list[Message]:
    """The conversation without what a provider would reject.

    Results without a call and empty answers are dropped; calls without a result get one.
    """
    result: list[Message] = []
    open_calls: list[tuple[str, str]] = []
    for message in messages:
        role = message.get("role")
        if role == "tool":
            call_id = str(message.get("tool_call_id") or "")
            called = next((call for call in open_calls if call[0] == call_id), None)
            if called is not None:
                open_calls.remove(called)
                result.append(message)
            continue
        result += [lost_result(*call) for call in open_calls]
        open_calls = []
        if role == "assistant":
            open_calls = calls_of(message)
            if not open_calls and not message.get("content"):
                continue
        result.append(message)
    return result + [lost_result(*call) for call in open_calls]


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
        added = [as_sent(message, characters) for message in messages[count:]]
        self.messages += added
        self.tokens += sum(map(message_tokens, added))
        self.may_have_images |= any(map(_may_have_image, added))
        self._last = messages[-1] if messages else None


def _may_have_image(message: Message) -> bool:
    return not isinstance(message.get("content"), str) or bool(image_in(message))
