"""What Claude models accept, by the version in their name: output limits and thinking."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypedDict

VERSION_PATTERN: Final = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
# Output limits in tokens of the models from a version on, the newest first.
OUTPUT_LIMITS: Final = (
    ((4, 6), 128_000),
    ((3, 7), 64_000),
    ((3, 5), 8_192),
    ((0, 0), 4_096),
)
EARLY_OPUS_LIMIT: Final = 32_000  # Opus 4 and 4.1
UNKNOWN_LIMIT: Final = 32_000  # of a model with another name; the server corrects it
ADAPTIVE_VERSION: Final = (4, 6)  # from here on a model chooses its thinking budget itself
THINKS_BY_DEFAULT: Final = (5, 0)
ALWAYS_THINKING: Final = frozenset({"opus", "fable"})  # families, from version 5 on
BUDGETS: Final = {"low": 4_096, "medium": 10_240, "high": 24_576}
MIN_BUDGET_TOKENS: Final = 1_024


class ThinkingOption(TypedDict, total=False):
    """The field `thinking` of a request."""

    type: str
    budget_tokens: int


class OutputConfig(TypedDict):
    """The field `output_config` of a request."""

    effort: str


class ThinkingFields(TypedDict, total=False):
    """The fields of a request that set the effort."""

    thinking: ThinkingOption
    output_config: OutputConfig


class ClaudeVersion(NamedTuple):
    """The family and version of a model."""

    family: str
    number: tuple[int, int]


def parse_version(model: str) -> ClaudeVersion | None:
    """The version in the name of a model; None for other names."""
    match = VERSION_PATTERN.search(model)
    if match is None:
        return None
    family = match[1] or next((name for name in ("opus", "sonnet", "haiku") if name in model), "")
    return ClaudeVersion(family, (int(match[2]), int(match[3] or 0)))


def output_limit(model: str) -> int:
    """The longest answer of a model in tokens."""
    version = parse_version(model)
    if version is None:
        return UNKNOWN_LIMIT
    if version.family == "opus" and (4, 0) <= version.number < (4, 2):
        return EARLY_OPUS_LIMIT
    return next(limit for number, limit in OUTPUT_LIMITS if version.number >= number)


def thinking_fields(model: str, effort: str, max_tokens: int) -> ThinkingFields:
    """The fields for an effort: none, low, medium or high; empty for the model's default."""
    if not effort:
        return {}
    version = parse_version(model)
    if version is not None and version.number >= ADAPTIVE_VERSION:
        return _adaptive_fields(version, effort)
    budget = min(BUDGETS.get(effort, 0), max_tokens - MIN_BUDGET_TOKENS)
    if budget < MIN_BUDGET_TOKENS:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive_fields(version: ClaudeVersion, effort: str) -> ThinkingFields:
    if effort != "none":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    if version.number < THINKS_BY_DEFAULT:
        return {}
    if version.family in ALWAYS_THINKING:
        return {"output_config": {"effort": "low"}}
    return {"thinking": {"type": "disabled"}}
