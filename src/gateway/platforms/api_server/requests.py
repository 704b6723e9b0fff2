"""Reads API requests: messages, session, attachments, and what cannot be honoured."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.platforms.api_server.failures import RequestError
from hermes_core.json_values import without_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_core.json_values import JsonObject


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


MAX_NAME_CHARS: Final = 200
MODEL_NAME: Final = "hermes"
INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})
TEXT_PART_TYPES: Final = frozenset({"text", "input_text", "output_text"})
DIGEST_PREFIX: Final = "2:"  # differs from digests of older releases
RETRY_COUNT: Final = re.compile(r"[0-9]{1,9}")
EARLIER_HEADER: Final = "[Earlier messages, as supplied by the API client]"
UNSUPPORTED_CODE: Final = "unsupported_parameter"
TOOLS_TEXT: Final = (
    "Hermes runs tools itself and cannot return tool calls to a client. Remove `{name}`."
)
RESULT_TEXT: Final = (
    "Hermes runs tools itself and cannot continue with results of a client's tools. "
    "The last message must be from the user."
)
FORMAT_TEXT: Final = "Only text is supported as the output format. Remove `{name}`."
LAST_TEXT: Final = "The last message must be from the user; answers cannot be continued."
TOOL_ROLES: Final = frozenset({"tool", "function"})
TOOL_ITEMS: Final = frozenset({"function_call_output", "function_call", "item_reference"})
NO_CHOICE: Final = (None, "none", "auto")


class ApiAttachment(NamedTuple):
    """A file in a message; without data it is only mentioned."""

    name: str
    mime: str = ""
    data: bytes | None = None


class ApiMessage(NamedTuple):
    """A message of the transcript in a request."""

    role: str
    text: str
    files: list[ApiAttachment]


class ApiCaller(NamedTuple):
    """The client of a request: its user, and the prefix of everything it names."""

    user: str = ""  # empty: chosen by the client
    prefix: str = ""


OWNER_CALLER: Final = ApiCaller()


class ApiRequest(NamedTuple):
    """A request."""

    earlier: list[ApiMessage]  # the transcript before the new messages
    said: list[ApiMessage]  # the new messages of the user
    instructions: str  # of the client, for the conversation
    session: str  # empty: none was named
    message_id: str
    is_named: bool  # the client has chosen the message ID
    user: str
    model: str
    is_stream: bool
    includes_usage: bool  # in a stream of chunks
    previous: str  # the ID of the previous response
    metadata: JsonObject
    file_bytes: int  # the part of the body that is files
    retry: int  # the number of the client's own retry
    caller: ApiCaller

    @property
    def token(self) -> str:
        """The base of the IDs in answers; the same for the same message ID."""
        return token_of(self.message_id)

    @property
    def is_stateless(self) -> bool:
        """Whether the client names no conversation: it is recognised by the transcript."""
        return not self.session and not self.previous

    @property
    def said_text(self) -> str:
        """The text of the new messages."""
        return "\n\n".join(item.text for item in self.said if item.text)

    def text(self, known: int) -> str:
        """The message for the agent; earlier messages after the first *known* ones are quoted."""
        return "\n\n".join([*_quoted(self.earlier[known:]), self.said_text])

    def files(self, known: int) -> list[ApiAttachment]:
        """The files of the messages after the first *known* ones."""
        return [file for item in (*self.earlier[known:], *self.said) for file in item.files]

    def digest(self) -> str:
        """A hash of what is asked, whatever the form of the answer."""
        start = f"{self.session}\n{self.previous}\n{self.instructions}"
        return DIGEST_PREFIX + chain((*self.earlier, *self.said), start)[-1]


def token_of(message_id: str) -> str:
    """The token of a message id."""
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]


def parse_body(body: bytes) -> JsonObject:
    """The JSON object in a body."""
    try:
        data = json.loads(body)
        if b"\\u" in body:
            data = without_lone_surrogates(data)
    except (ValueError, RecursionError) as error:
        raise RequestError("The request body is not valid JSON.", "invalid_json") from error
    if not isinstance(data, dict):
        raise RequestError("The request body must be a JSON object.", "invalid_json")
    return data


def read_completion(body: JsonObject, headers: Mapping[str, str]) -> ApiRequest:
    """A request to /v1/chat/completions."""
    transcript = _transcript(body.get("messages"), "messages")
    return _request(body, headers, transcript, "")


def read_response(body: JsonObject, headers: Mapping[str, str]) -> ApiRequest:
    """A request to /v1/responses."""
    result = body.get("input")
    if isinstance(result, str):
        result = [{"role": "user", "content": result}]
    return _request(body, headers, _transcript(result, "input"), _optional(body, "instructions"))


def _request(
    body: JsonObject, headers: Mapping[str, str], given: list[ApiMessage], instructions: str
) -> ApiRequest:
    reject_unsupported(body)
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    named = _name(headers.get("idempotency-key") or metadata.get("message_id"), "Idempotency-Key")
    user, previous = _name(body.get("user"), "user"), _optional(body, "previous_response_id")
    session = _name(headers.get("x-hermes-session"), "X-Hermes-Session")
    options = body.get("stream_options")
    system = [instructions, *(item.text for item in given if item.role in INSTRUCTION_ROLES)]
    earlier, said = _split([item for item in given if item.role not in INSTRUCTION_ROLES])
    retry = headers.get("x-stainless-retry-count", "")
    return ApiRequest(
        [] if session or previous else earlier,
        said,
        "\n\n".join(text for text in system if text.strip()),
        session,
        named or f"request-{uuid.uuid4().hex}",
        bool(named),
        user,
        _optional(body, "model") or MODEL_NAME,
        body.get("stream") is True,
        isinstance(options, dict) and options.get("include_usage") is True,
        previous,
        metadata,
        sum(_length(file) for item in given for file in item.files),
        int(retry) if RETRY_COUNT.fullmatch(retry) else 0,
        OWNER_CALLER,
    )


def for_caller(request: ApiRequest, caller: ApiCaller) -> ApiRequest:
    """A request of a caller: sessions and message IDs of different callers differ."""
    return request._replace(
        session=f"{caller.prefix}{request.session}" if request.session else "",
        message_id=f"{caller.prefix}{request.message_id}",
        user=caller.user or request.user,
        caller=caller,
    )


def _name(value: Any, what: str) -> str:
    """A name chosen by the client."""
    name = "" if value is None else str(value).strip()
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        text = f"`{what}` must be at most {MAX_NAME_CHARS} printable characters."
        raise RequestError(text, "invalid_value", param=what)
    return name


def _optional(body: JsonObject, name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestError(f"`{name}` must be a string.", "invalid_type", param=name)
    return value or ""


# The transcript


def _transcript(given: Any, name: str) -> list[ApiMessage]:
    if not isinstance(given, list) or not given:
        text = f"`{name}` is required and must be a list of messages."
        raise RequestError(text, "missing_required_parameter", param=name)
    items = [item for item in given if isinstance(item, dict)]
    reject_trailing(items, name)
    said = [
        ApiMessage(role, *_content(item.get("content")))
        for item in items
        if isinstance(role := item.get("role"), str)
    ]
    if not any(item.role == "user" for item in said):
        raise RequestError(f"`{name}` contains no user message.", "invalid_value", param=name)
    return said


def _split(given: list[ApiMessage]) -> tuple[list[ApiMessage], list[ApiMessage]]:
    """The earlier messages, and the new ones of the user since the last answer."""
    end = max(number for number, item in enumerate(given, 1) if item.role == "user")
    start = end
    while start and given[start - 1].role == "user":
        start -= 1
    return given[:start], given[start:end]


def _quoted(earlier: list[ApiMessage]) -> Iterator[str]:
    """The earlier messages, with each line quoted so that roles cannot be forged."""
    if not earlier:
        return
    yield EARLIER_HEADER
    for item in earlier:
        lines = item.text.splitlines() or [""]
        yield "\n".join(f"> {line}" for line in (f"{item.role}: {lines[0]}", *lines[1:]))


def _content(content: Any) -> tuple[str, list[ApiAttachment]]:
    if content is None or isinstance(content, str):
        return content or "", []
    parts = content if isinstance(content, list) else []
    parts = [part for part in parts if isinstance(part, dict)]
    texts = [str(part.get("text") or "") for part in parts if part.get("type") in TEXT_PART_TYPES]
    return "\n".join(texts), [file for part in parts for file in _files(part)]


def _files(part: JsonObject) -> Iterator[ApiAttachment]:
    """The file in a part of a message; external URLs are not fetched."""
    kind = part.get("type")
    if kind in {"image_url", "input_image"}:
        result = part.get("image_url")
        url = result.get("url") if isinstance(result, dict) else result
        yield _embedded(str(url or ""), "picture")
    elif kind in {"file", "input_file"}:
        result = part.get("file") if isinstance(part.get("file"), dict) else part
        result = result if isinstance(result, dict) else {}
        yield _embedded(str(result.get("file_data") or ""), str(result.get("filename") or "file"))
    elif kind == "input_audio" and isinstance(sound := part.get("input_audio"), dict):
        form = str(sound.get("format") or "wav")
        mime = "audio/mpeg" if form == "mp3" else f"audio/{form}"
        yield _embedded(f"data:{mime};base64,{sound.get('data') or ''}", f"sound.{form}")


def _length(file: ApiAttachment) -> int:
    """The encoded size of a file."""
    return 0 if file.data is None else (len(file.data) + 2) // 3 * 4


def _embedded(url: str, name: str) -> ApiAttachment:
    head, comma, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        return ApiAttachment(url[:100] if url.startswith("http") else name)
    try:
        result = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"The data of {name} is not valid base64.", "invalid_value") from error
    return ApiAttachment(name, head.removeprefix("data:").removesuffix(";base64"), result)


def reject_unsupported(body: JsonObject) -> None:
    """RequestError for the first field that would have to be ignored.

    Sampling parameters such as `temperature` are ignored, because the agent chooses its own.
    """
    _reject_tools(body)
    _reject_formats(body)
    if body.get("n") not in {None, 1}:
        raise RequestError("`n` must be 1.", "unsupported_value", param="n")
    for name in ("logprobs", "top_logprobs", "audio", "background", "conversation", "prompt"):
        if body.get(name):
            raise RequestError(f"`{name}` is not supported.", UNSUPPORTED_CODE, param=name)


def _reject_tools(body: JsonObject) -> None:
    choice = body.get("tool_choice")
    names = [name for name in ("tools", "functions") if body.get(name) and choice != "none"]
    if choice not in NO_CHOICE:
        names.append("tool_choice")
    if body.get("function_call") not in NO_CHOICE:
        names.append("function_call")
    for name in names:
        raise RequestError(TOOLS_TEXT.format(name=name), UNSUPPORTED_CODE, param=name)


def _reject_formats(body: JsonObject) -> None:
    if _format_type(body.get("response_format")) != "text":
        name = "response_format"
        raise RequestError(FORMAT_TEXT.format(name=name), UNSUPPORTED_CODE, param=name)
    options = body.get("text")
    if isinstance(options, dict) and _format_type(options.get("format")) != "text":
        raise RequestError(
            FORMAT_TEXT.format(name="text.format"), UNSUPPORTED_CODE, param="text.format"
        )
    if any(item != "text" for item in _list(body.get("modalities"))):
        raise RequestError(
            FORMAT_TEXT.format(name="modalities"), UNSUPPORTED_CODE, param="modalities"
        )


def _format_type(value: Any) -> Any:
    return value.get("type", "text") if isinstance(value, dict) else value or "text"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def reject_trailing(items: list[JsonObject], name: str) -> None:
    """RequestError if the messages end with something else than words of the user."""
    for item in reversed(items):
        role, kind = item.get("role"), item.get("type")
        if role in TOOL_ROLES or kind in TOOL_ITEMS:
            raise RequestError(RESULT_TEXT, "unsupported_value", param=name)
        if role == "assistant":
            raise RequestError(LAST_TEXT, "unsupported_value", param=name)
        if role == "user":
            return
