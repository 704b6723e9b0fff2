"""Normalizes model names and finds the maker of a model.

`openrouter/anthropic/claude-sonnet-4-20250514:beta` and `claude-sonnet-4` are the same model.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Dates, release channels and quantizations do not make a different model.
MODEL_SUFFIX: Final = re.compile(
    r"(?:[-@]v?(?:20\d{6}|20\d\d-\d\d-\d\d|\d{4})|[-:](?:latest|preview|beta|free|exp|online|nitro"
    r"|floor|extended|thinking|instruct|it|chat|q\d(?:-?\w+)*|fp\d+|gguf|\d+k)"
    r"|-(?:preview|exp)-\d\d-\d\d)$"
)
MODEL_FAMILIES: Final = (
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("gemma", "google"),
    ("llama", "meta"),
    ("codellama", "meta"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("ministral", "mistral"),
    ("qwen", "alibaba"),
    ("qwq", "alibaba"),
    ("deepseek", "deepseek"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zhipu"),
    ("hermes", "nous"),
    ("phi", "microsoft"),
    ("command", "cohere"),
    ("nova", "amazon"),
    ("nemotron", "nvidia"),
    ("granite", "ibm"),
    ("yi", "01ai"),
    ("minimax", "minimax"),
    ("smollm", "huggingface"),
)


@lru_cache(maxsize=1024)
def normal_model(name: str) -> str:
    """The normalized name of a model, or ''."""
    plain = name.strip().lower().rsplit("/", 1)[-1].replace("_", "-")
    if plain in ("", "none", "null", "unknown"):
        return ""
    while (shorter := MODEL_SUFFIX.sub("", plain)) != plain and shorter:
        plain = shorter
    # Versions are written with a point or with a dash.
    return re.sub(r"(?<=\d)-(?=\d{1,2}(?:-|$))", ".", plain)


@lru_cache(maxsize=1024)
def model_maker(name: str) -> str:
    """The maker of a model; the prefix of the name for an unknown family."""
    model = normal_model(name)
    for family, maker in MODEL_FAMILIES:
        if model.startswith(family) and not model[len(family) : len(family) + 1].isalpha():
            return maker
    parts = name.strip().lower().split("/")
    if not model:
        return ""
    return parts[-2] if len(parts) > 1 else re.split(r"[-:.\d]", model, maxsplit=1)[0] or model
