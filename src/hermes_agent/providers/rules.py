"""What each provider accepts in a request: data, and what a refused request teaches about it.

Sources: docs/reference/providers.md.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.clock import SystemClock
from hermes_core.json_files import read_json, write_json
from hermes_core.known_models import host_of
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_agent.events import Failed
    from hermes_agent.messages import ModelRequest

log = logging.getLogger(__name__)

ANY_ID: Final = re.compile(r"[!-~]{1,64}")
WORD_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}")
SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # what all providers accept


class Rules(NamedTuple):
    """The rules of a provider; the defaults suit servers of which nothing is known."""

    # Messages
    call_ids: re.Pattern[str] = ANY_ID  # of tool calls, each unique in a request
    id_prefix: str = "call_"
    id_characters: int = 16  # of a new ID, after the prefix
    answer_before_prompt: bool = True  # a prompt must not follow a tool result at once
    prompt_first: bool = False  # the first message must be a prompt
    images_in_results: bool = False
    has_system_role: bool = True  # otherwise the system prompt is part of the first prompt
    # Reasoning that goes back to the model that wrote it
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_of_answers: bool = False  # also of answers without calls
    needs_reasoning: bool = False  # each answer with calls must have the first of the fields
    returns_details: bool = False  # `reasoning_details`
    signs_calls: bool = False  # the first call of an answer must have a signature
    # Options
    has_tools: bool = True
    sees_images: bool = True
    limit_field: str = "max_tokens"
    counts_on_request: bool = True  # tokens are counted if `stream_options` asks for it
    has_tool_choice: bool = True
    has_effort: bool = True
    has_summaries: bool = True  # of reasoning that is not shown
    effort_in_reasoning: bool = False  # `reasoning: {effort}` instead of `reasoning_effort`
    keeps_reasoning_encrypted: bool = True  # Responses: reasoning items are sent back


UNKNOWN: Final = Rules()
HOSTED: Final = Rules(call_ids=WORD_ID, answer_before_prompt=False, reasoning_fields=())
OPENAI_CHAT: Final = HOSTED._replace(limit_field="max_completion_tokens")
RESPONSES: Final = HOSTED._replace(images_in_results=True)
ANTHROPIC: Final = HOSTED._replace(prompt_first=True, images_in_results=True)
GEMINI: Final = HOSTED._replace(prompt_first=True)
OPENROUTER: Final = HOSTED._replace(returns_details=True, effort_in_reasoning=True)
GROQ: Final = HOSTED
CEREBRAS: Final = HOSTED._replace(reasoning_fields=("reasoning",), reasoning_of_answers=True)
MISTRAL: Final = HOSTED._replace(
    call_ids=SHORT_ID, id_prefix="", id_characters=9, answer_before_prompt=True,
    counts_on_request=False, has_effort=False,
)  # fmt: skip
DEEPSEEK: Final = HOSTED._replace(
    reasoning_fields=("reasoning_content",), reasoning_of_answers=True, needs_reasoning=True
)
MOONSHOT: Final = DEEPSEEK._replace(call_ids=ANY_ID)
RULES_BY_HOST: Final = {
    "api.openai.com": OPENAI_CHAT,
    "openrouter.ai": OPENROUTER,
    "generativelanguage.googleapis.com": GEMINI,
    "api.groq.com": GROQ,
    "api.cerebras.ai": CEREBRAS,
    "api.mistral.ai": MISTRAL,
    "api.deepseek.com": DEEPSEEK,
    "api.moonshot.ai": MOONSHOT,
    "api.moonshot.cn": MOONSHOT,
    "api.x.ai": HOSTED,
    "api.z.ai": HOSTED._replace(reasoning_fields=("reasoning_content",)),
    "api.together.xyz": HOSTED,
}
SIGNING_MODELS: Final = re.compile(r"gemini-(?:[3-9]|\d\d)")


def rules_for(base_url: str, model: str) -> Rules:
    """The rules of an endpoint with OpenAI's API."""
    rules = RULES_BY_HOST.get(host_of(base_url), UNKNOWN)
    return for_model(rules, model) if rules is GEMINI else rules


def for_model(rules: Rules, model: str) -> Rules:
    """Google's rules for one of its models."""
    return rules._replace(signs_calls=SIGNING_MODELS.search(model) is not None)


class Lesson(NamedTuple):
    """What a refused request teaches: the text of the error, and the rules that follow."""

    name: str
    error: re.Pattern[str]
    changes: Mapping[str, Any]  # of the rules
    notice: str = ""  # for the user; {model} is filled in


def _lesson(name: str, error: str, notice: str = "", **changes: Any) -> Lesson:
    return Lesson(name, re.compile(error, re.IGNORECASE | re.DOTALL), changes, notice)


# The first that matches and changes something is applied.
LESSONS: Final = (
    _lesson(
        "no tools",
        r"does not support (?:tools?\b|function.?call)|tools? (?:use|calling) (?:is )?not supported"
        r"|no endpoints found that support tool use|function calling is not enabled"
        r"|tools?['`\"]? (?:are|is) not supported|--jinja|enable-auto-tool-choice",
        "{model} cannot use tools: the conversation continues without them.",
        has_tools=False,
    ),
    _lesson(
        "no images",
        r"image_url is only supported|(?:does|do) not support (?:image|vision|multimodal)"
        r"|images?(?:[ _](?:input|content|url)s?)?['`\"]? (?:are|is) not (?:supported|enabled)"
        r"|no endpoints found that support image|missing data required for image|at most 0 image"
        r"|unknown variant .?image_url|not a multimodal model|cannot read .?image|mmproj"
        r"|content must be a string",
        "{model} cannot see images: each one is replaced by a note.",
        sees_images=False,
    ),
    _lesson(
        "no stream options",
        r"stream_options", counts_on_request=False),
    _lesson(
        "roles alternate",
        r"roles must alternate|must alternate between|unexpected role .user. after role .tool"
        r"|alternate user(?: and |/)assistant",
        answer_before_prompt=True,
    ),
    _lesson(
        "no system role",
        r"system (?:role|message|instruction)s? (?:is |are )?not (?:supported|enabled)"
        r"|developer instruction is not enabled",
        has_system_role=False,
    ),
    _lesson(
        "short call IDs",
        r"tool.?call.?ids? (?:was|should|must|has to)\b.{0,80}(?:length|9)",
        call_ids=SHORT_ID, id_prefix="", id_characters=9,
    ),
    _lesson(
        "no reasoning back",
        r"reasoning_content.{0,80}(?:unsupported|not permitted|not allowed|unexpected|extra)"
        r"|(?:unsupported|unexpected|unrecognized|unknown|extra).{0,60}reasoning_content",
        reasoning_fields=(), needs_reasoning=False,
    ),
    _lesson(
        "reasoning back",
        r"missing .?reasoning_content"
        r"|reasoning_content.{0,60}(?:must be passed|is missing|required)",
        reasoning_fields=("reasoning_content",), needs_reasoning=True, reasoning_of_answers=True,
    ),
    _lesson(
        "signed calls",
        r"missing a .?thought_signature", signs_calls=True),
    _lesson(
        "max_completion_tokens",
        r"max_tokens.{0,80}max_completion_tokens", limit_field="max_completion_tokens"),
    _lesson(
        "max_tokens",
        r"max_completion_tokens.{0,60}(?:unsupported|not supported|unrecogni|unknown|extra)",
            limit_field="max_tokens"),
    _lesson(
        "no encrypted reasoning",
        r"encrypted content is not supported", keeps_reasoning_encrypted=False),
    _lesson(
        "no reasoning summaries",
        r"reasoning summar", has_summaries=False),
    _lesson(
        "no effort",
        r"(?:reasoning_effort|reasoning\.effort|thinking level|thinking_level|thinking budget)"
        r".{0,80}(?:unsupported|not supported|unrecogni|unknown|extra|not permitted)"
        r"|(?:unsupported|unknown|unrecogni|extra).{0,60}(?:reasoning_effort|reasoning\.effort)"
        r"|does not support (?:(?:the|parameter:?) )?.?(?:thinking|reasoning|effort)"
        r"|only works in thinking mode",
        has_effort=False,
    ),
    _lesson(
        "no tool_choice",
        r"tool_choice", has_tool_choice=False),
)  # fmt: skip
REFUSED: Final = frozenset({400, 404, 415, 422, 500, 501})
LESSONS_BY_NAME: Final = {lesson.name: lesson for lesson in LESSONS}
MAX_AGE_SECONDS: Final = 7 * 86_400.0  # a newer release of a server may accept more


def lesson_of(rules: Rules, failed: Failed, request: ModelRequest) -> Lesson | None:
    """What a refused request teaches about a provider with these rules."""
    if failed.status_code not in REFUSED:
        return None
    for lesson in LESSONS:
        is_new = rules._replace(**lesson.changes) != rules
        is_about_it = (
            bool(request.tools)
            if "has_tools" in lesson.changes
            else request.may_have_images or "sees_images" not in lesson.changes
        )
        if is_new and is_about_it and lesson.error.search(failed.message):
            return lesson
    return None


class LearnedRules:
    """What was learned about one model, for a week, in `cache/learned-rules.json`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._path = hermes_home() / "cache" / "learned-rules.json"

    def applied_to(self, rules: Rules) -> Rules:
        """The rules with what was learned."""
        for name, learned_at in self._read().get(self._model, {}).items():
            lesson = LESSONS_BY_NAME.get(name)
            if lesson is not None and 0 <= time.time() - learned_at < MAX_AGE_SECONDS:
                rules = rules._replace(**lesson.changes)
        return rules

    def add(self, lesson: Lesson, rules: Rules) -> Rules:
        """Keep a lesson; the rules with it."""
        known = self._read()
        lessons = {**known.get(self._model, {}), lesson.name: time.time()}
        try:
            write_json(self._path, {**known, self._model: lessons})
        except OSError as error:  # it is learned again next time
            log.info("cannot keep the rules of %s: %s", self._model, error)
        return rules._replace(**lesson.changes)

    def _read(self) -> dict[str, dict[str, float]]:
        value = read_json(self._path, {}, SystemClock()).value
        if not isinstance(value, dict):
            return {}
        return {
            model: {name: at for name, at in lessons.items() if isinstance(at, int | float)}
            for model, lessons in value.items()
            if isinstance(lessons, dict)
        }
