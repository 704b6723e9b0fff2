"""Asks the search service of the user's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import httpx2

from hermes_agent.providers.http_stream import ssl_context
from hermes_agent.tools.base import ToolError, number, success, text

if TYPE_CHECKING:
    from hermes_agent.tools.web.tools import SearchService
    from hermes_core.json_values import JsonObject, JsonValue

MAX_SECONDS: Final = 20.0
MAX_RESULTS: Final = 20
SNIPPET_CHARACTERS: Final = 400
SEARXNG_ADVICE: Final = (
    " The server may not allow JSON: add json to search.formats in its settings.yml."
)


class SearchResult(NamedTuple):
    """A page that was found."""

    title: str
    url: str
    snippet: str


def search(arguments: JsonObject, service: SearchService) -> str:
    """Run a call of the tool."""
    query = text(arguments, "query").strip()
    if not query:
        raise ToolError("`query` is empty.")
    limit = number(arguments, "limit", 8, 1, MAX_RESULTS)
    found = _results(_ask(service, query, limit), service)[:limit]
    return success(results=[result._asdict() for result in found])


def _ask(service: SearchService, query: str, limit: int) -> JsonValue:
    """The answer of the service."""
    parameters = {"q": query, "format": "json"}
    headers = {"Accept": "application/json"}
    if service.name == "brave":
        parameters = {"q": query, "count": str(limit)}
        headers["X-Subscription-Token"] = service.key
    try:
        with httpx2.Client(timeout=MAX_SECONDS, verify=ssl_context()) as client:
            if service.name == "tavily":
                headers["Authorization"] = f"Bearer {service.key}"
                body = {"query": query, "max_results": limit}
                response = client.post(service.url, json=body, headers=headers)
            else:
                response = client.get(service.url, params=parameters, headers=headers)
        if response.status_code != httpx2.codes.OK:
            raise ToolError(_problem(service, response))
        answer: JsonValue = response.json()
    except httpx2.InvalidURL as error:
        raise ToolError(f"web.search_url is not a URL: {error}") from None
    except httpx2.HTTPError as error:
        raise ToolError(f"{service.name} could not be reached: {error}") from None
    except ValueError:
        raise ToolError(f"{service.name} did not answer with JSON.") from None
    return answer


def _problem(service: SearchService, response: httpx2.Response) -> str:
    """What a service answered instead of results, and what the user can do."""
    status = response.status_code
    advice = ""
    if response.has_redirect_location:
        target = response.headers.get("location")
        advice = f" It redirects to {target}; the user has to change web.search_url."
    elif status == httpx2.codes.TOO_MANY_REQUESTS:
        advice = " Too many requests; try again later."
    elif status in {httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN}:
        advice = f" The user has to check keys.{service.name}." if service.key else SEARXNG_ADVICE
    return f"{service.name} answered with HTTP status {status}.{advice}"


def _results(answer: JsonValue, service: SearchService) -> list[SearchResult]:
    """The results in an answer; each service has names of its own."""
    document = answer if isinstance(answer, dict) else {}
    if service.name == "brave":
        web = document.get("web")
        document = web if isinstance(web, dict) else {}
    entries = document.get("results")
    if not isinstance(entries, list):
        return []
    snippet = "description" if service.name == "brave" else "content"
    return [
        SearchResult(
            str(entry.get("title") or ""),
            str(entry.get("url")),
            " ".join(str(entry.get(snippet) or "").split())[:SNIPPET_CHARACTERS],
        )
        for entry in entries
        if isinstance(entry, dict) and entry.get("url")
    ]
