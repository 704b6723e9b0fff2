"""How much a model reads at once, as the program that serves it on this machine says.

Each program says it in another place. Only this machine is asked, and only for a moment:
elsewhere the table of known models has to do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import httpx2

from hermes_agent.providers.http_stream import certificates

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS: Final = 0.5  # for each question
# What lists of models call it: vLLM; LM Studio, of what is loaded and at most; others.
LISTED: Final = ("max_model_len", "loaded_context_length", "max_context_length", "context_length")
OLLAMA_DEFAULT: Final = 4096  # what Ollama lets a model read when nobody says otherwise
NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


def told_by_server(base_url: str, model: str, headers: dict[str, str]) -> int:
    """The window the server at *base_url* gives *model*; 0 when it does not say."""
    root = base_url.rstrip("/").removesuffix("/v1")
    with httpx2.Client(timeout=SECONDS, headers=headers, verify=certificates()) as client:
        ways: tuple[Callable[[], int], ...] = (
            lambda: _listed(client.get(f"{root}/v1/models").json(), model),
            lambda: _llama_server(client.get(f"{root}/props").json()),
            lambda: _loaded_by_ollama(client.get(f"{root}/api/ps").json(), model),
            lambda: _ollama(client.post(f"{root}/api/show", json={"model": model}).json()),
        )
        try:
            return next((found for way in ways if (found := _tried(way))), 0)
        except (httpx2.HTTPError, httpx2.InvalidURL):  # nobody there, or busy: asked no further
            return 0


def _tried(way: Callable[[], int]) -> int:
    """What one way of asking finds; a server that does not know it answers in any form."""
    try:
        return way()
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0


def _listed(found: Any, model: str) -> int:
    entry = next(one for one in [*found["data"], {}] if one.get("id", model) == model)
    return next((entry[name] for name in LISTED if isinstance(entry.get(name), int)), 0)


def _llama_server(found: Any) -> int:
    return int(found["default_generation_settings"]["n_ctx"])


def _loaded_by_ollama(found: Any, model: str) -> int:
    loaded = {one["name"]: one.get("context_length", 0) for one in found["models"]}
    return int(loaded.get(model) or loaded.get(f"{model}:latest") or 0)


def _ollama(found: Any) -> int:
    """What a model that is not loaded yet will be given; the rest Ollama silently leaves out."""
    chosen = NUM_CTX.search(found.get("parameters") or "")
    if chosen is not None:
        return int(chosen[1])
    sizes = (size for name, size in found["model_info"].items() if name.endswith(".context_length"))
    return min(OLLAMA_DEFAULT, *(int(size) for size in sizes), OLLAMA_DEFAULT)
