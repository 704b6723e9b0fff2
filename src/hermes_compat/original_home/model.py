"""The model of hermes-agent in our settings."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.providers import apis
from hermes_agent.providers.selection import key_name, save_choice
from hermes_compat.original_home.home import MODEL_SECTION, ItemState, MoveItem
from hermes_core.config.values import is_url
from hermes_core.json_values import object_in, objects_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_compat.original_home.home import MoveContext, OriginalHome
    from hermes_core.json_values import JsonObject

KIND: Final = "model"
FALLBACK_KIND: Final = "fallback"
ENDPOINTS: Final[dict[str, tuple[apis.ProviderApi, str]]] = {
    "anthropic": (apis.ANTHROPIC_API, ""),
    "openai": (apis.OPENAI_API, apis.OPENAI),
    "openai-api": (apis.OPENAI_API, apis.OPENAI),
    "openrouter": (apis.OPENAI_API, apis.OPENROUTER),
}
# Without a provider, the first of these keys decides.
KEYS_BY_PROVIDER: Final = (
    ("OPENROUTER_API_KEY", "openrouter"),
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
)
NAME_KEYS: Final = ("default", "model", "name")
MODEL_KEYS: Final = frozenset(
    {*NAME_KEYS, "provider", "base_url", "api_key", "api_mode", "context_length"}
)
CUSTOM: Final = "custom"
FALLBACKS: Final = ("fallback_model", "fallback_providers")
UNCHOSEN: Final = frozenset({"", "auto"})
ANTHROPIC_HOST: Final = "api.anthropic.com"
ANTHROPIC_MODES: Final = frozenset({"anthropic_messages", "anthropic"})
REFERENCE: Final = re.compile(r"\$\{(\w+)\}")


class TranslatedModel(NamedTuple):
    """A model in our settings, or the reason why there is none."""

    choice: apis.ModelChoice | None
    problem: str = ""


def plan_model(context: MoveContext) -> Iterator[MoveItem]:
    """The default model, its endpoint, its key and its context window."""
    home, config = context.home, context.config
    if not home.config.get(MODEL_SECTION):
        return
    model = translate(home)
    if model.choice is None:
        yield MoveItem(KIND, _name(home), ItemState.SKIP, model.problem)
        return
    choice = model.choice
    current = config.settings().get_str("llm.model")
    if current == choice.model:
        yield MoveItem(KIND, choice.model, ItemState.HERE, "configured here")
    elif current:
        reason = f"{current} is configured here; to change it: hermes models use NAME"
        yield MoveItem(KIND, choice.model, ItemState.SKIP, reason)
    else:
        yield MoveItem(KIND, choice.model, ItemState.TAKE, _where(choice), lambda: _save(context))


def plan_fallbacks(context: MoveContext) -> Iterator[MoveItem]:
    """The models that are tried when the first one fails."""
    names: list[str] = []
    unknown: list[str] = []
    for item in _fallbacks(context.home.config):
        provider, model = text_in(item, "provider").lower(), text_in(item, "model")
        is_known = provider in ENDPOINTS and model and not text_in(item, "base_url")
        (names if is_known else unknown).append(f"{provider.removesuffix('-api')}:{model}")
    current = context.config.settings().get_list("llm.fallbacks")
    if names and set(names) <= set(current):
        yield MoveItem(FALLBACK_KIND, ", ".join(names), ItemState.HERE, "configured here")
    elif names and current:
        yield MoveItem(FALLBACK_KIND, ", ".join(names), ItemState.SKIP, "others are set here")
    elif names:

        def save() -> None:
            context.config.set("llm.fallbacks", ", ".join(names))

        yield MoveItem(FALLBACK_KIND, ", ".join(names), ItemState.TAKE, "as llm.fallbacks", save)
    if unknown:
        reason = "add it by hand: hermes config set llm.fallbacks URL#MODEL"
        yield MoveItem(FALLBACK_KIND, ", ".join(unknown), ItemState.SKIP, reason)


def _fallbacks(config: JsonObject) -> Iterator[JsonObject]:
    """The blocks of fallback models: one, or a list."""
    for name in FALLBACKS:
        value = config.get(name)
        if isinstance(value, dict) and value.get("model"):
            yield value
        yield from objects_in(config, name)


def _save(context: MoveContext) -> str:
    choice = translate(context.home).choice
    if choice is None:
        return ""
    notes = save_choice(context.config, choice, choice.key)
    if choice.window:
        context.config.set("llm.window", str(choice.window))
    return " ".join([_where(choice), *notes])


def translate(home: OriginalHome) -> TranslatedModel:
    """The model section of config.yaml, which is a name or a block."""
    section = home.section(MODEL_SECTION)
    name = _name(home)
    if not name:
        return TranslatedModel(None, "the section names no model; choose one: hermes setup")
    provider = text_in(section, "provider").lower()
    own = _custom_provider(home, provider)
    address = text_in(section, "base_url") or text_in(own, "base_url")
    if provider == CUSTOM and not address:
        address = home.env.get("OPENAI_BASE_URL", "")
    base_url = address.rstrip("/")
    if base_url and not is_url(base_url):
        problem = f"{address!r} is not a URL such as http://localhost:1234/v1"
        return TranslatedModel(None, f"{problem}; choose a model: hermes setup")
    key = _secret(section, own, variables=home.env)
    window = section.get("context_length")
    choice = _choice(home, name, provider, base_url, is_anthropic=_is_anthropic(section, own))
    if choice is None:
        return TranslatedModel(
            None, f"the provider {provider!r} is not available here; choose one: hermes setup"
        )
    is_window = isinstance(window, int) and not isinstance(window, bool)
    return TranslatedModel(choice._replace(key=key, window=int(str(window)) if is_window else 0))


def _name(home: OriginalHome) -> str:
    value = home.config.get(MODEL_SECTION)
    if isinstance(value, str):
        return value.strip()
    section = home.section(MODEL_SECTION)
    return next((text for key in NAME_KEYS if (text := text_in(section, key).strip())), "")


def _choice(
    home: OriginalHome, name: str, provider: str, base_url: str, *, is_anthropic: bool
) -> apis.ModelChoice | None:
    if provider in UNCHOSEN and not base_url:
        keys = {**home.env, **os.environ}
        provider = next((name for key, name in KEYS_BY_PROVIDER if keys.get(key)), "openrouter")
    if provider in ENDPOINTS:
        api, endpoint = ENDPOINTS[provider]
        url = endpoint if not base_url or base_url == endpoint else base_url
        plain = name.removeprefix(f"{provider}/") if provider != "openrouter" else name
        return apis.ModelChoice(api, plain, url)
    if urlsplit(base_url).hostname == ANTHROPIC_HOST:
        return apis.ModelChoice(apis.ANTHROPIC_API, name.removeprefix("anthropic/"))
    if not base_url:
        return None
    return apis.ModelChoice(apis.ANTHROPIC_API if is_anthropic else apis.OPENAI_API, name, base_url)


def _custom_provider(home: OriginalHome, provider: str) -> JsonObject:
    """The entry of a provider that the user has defined."""
    name = provider.removeprefix("custom:")
    for item in objects_in(home.config, "custom_providers"):
        if text_in(item, "name").lower() == name:
            return item
    return object_in(home.section("providers"), name)


def _is_anthropic(*blocks: JsonObject) -> bool:
    return any(text_in(block, "api_mode") in ANTHROPIC_MODES for block in blocks)


def _secret(*blocks: JsonObject, variables: Mapping[str, str]) -> str:
    """The API key in a block, as text or as `${NAME}`."""
    for block in blocks:
        value = text_in(block, "api_key").strip()
        reference = REFERENCE.fullmatch(value)
        key = variables.get(reference[1], "") if reference else value
        if key:
            return key
    return ""


def _where(choice: apis.ModelChoice) -> str:
    place = choice.base_url or "api.anthropic.com"
    name = key_name(choice.api, choice.base_url)
    key = f", key saved as {name}" if choice.key and name else ""
    window = f", context window {choice.window}" if choice.window else ""
    return f"llm.model at {place}{key}{window}"
