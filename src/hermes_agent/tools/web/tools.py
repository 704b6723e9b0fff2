"""The tools `web_fetch` and `web_search`: what the model reads, and what needs approval.

What they do is imported with the first call.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.permissions.command_review import CommandReview
from hermes_agent.permissions.verdicts import Refuse, RiskFinding
from hermes_agent.tools.base import (
    Tool,
    ToolError,
    always_reads,
    parameter,
    reporting_errors,
    schema,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_agent.permissions.approvals import ReviewCall
    from hermes_agent.tools.base import ToolContext
    from hermes_core.config.file import Settings
    from hermes_core.json_values import JsonObject

FETCH_TOOL: Final = "web_fetch"
SEARCH_TOOL: Final = "web_search"
NO_SERVICE: Final = "none"
SERVICE_URLS: Final = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
}


MAX_URL_CHARACTERS: Final = 8_000
SCHEMES: Final = {"http": 80, "https": 443}


class WebAddress(NamedTuple):
    """A URL and the parts that matter for a connection."""

    url: str
    scheme: str
    host: str
    port: int


def parse_url(url: str) -> WebAddress:
    """The parts of a URL; ToolError for what cannot be fetched."""
    url = url.strip()
    if len(url) > MAX_URL_CHARACTERS:
        raise ToolError(f"The URL is longer than {MAX_URL_CHARACTERS:,} characters.")
    if not url.isprintable():
        raise ToolError(f"{url!r} is not a URL.")
    if "://" not in url:
        url = f"https://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError(f"{url!r} is not a URL.") from None
    host = (parts.hostname or "").rstrip(".").lower()
    if parts.scheme not in SCHEMES or not host:
        raise ToolError("Only http and https URLs can be fetched.")
    if parts.username or parts.password:
        raise ToolError("A URL with a user name or password is not fetched.")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise ToolError(f"{host!r} is not a host name.") from None
    return WebAddress(url, parts.scheme, host, port or SCHEMES[parts.scheme])


def matches_host(host: str, patterns: Sequence[str]) -> bool:
    """Whether a host is one of *patterns*, e.g. docs.python.org or *.example.org."""
    return any(fnmatchcase(host, pattern.lower()) for pattern in patterns)


class WebLimits(NamedTuple):
    """Hosts with special rights, from the settings."""

    allowed_hosts: tuple[str, ...] = ()  # without asking
    private_hosts: tuple[str, ...] = ()  # in private networks


def fetch_tool(limits: WebLimits) -> Tool:
    """The tool."""
    return Tool(
        FETCH_TOOL,
        "Read a web page or text file by URL.",
        schema("url", url=parameter("string"), offset=parameter("integer")),
        reporting_errors(lambda arguments, context: _fetch(arguments, context, limits)),
        always_reads,
    )


def fetch_review(limits: WebLimits, is_plan: Callable[[], bool]) -> ReviewCall:
    """How calls are reviewed: a host that is not in the settings needs approval.

    The mode plan uses no network without asking.
    """

    def review(arguments: JsonObject, context: ToolContext) -> tuple[str, CommandReview] | Refuse:
        del context
        try:
            address = parse_url(text(arguments, "url"))
        except ToolError as error:
            return Refuse(str(error))
        shown = f"{FETCH_TOOL} {address.url}"
        if matches_host(address.host, limits.allowed_hosts) and not is_plan():
            return shown, CommandReview((), True)
        finding = RiskFinding(f"web:{address.host}", f"reads {address.host} over the network")
        return shown, CommandReview((finding,), True)

    return review


def _fetch(arguments: JsonObject, context: ToolContext, limits: WebLimits) -> str:
    from hermes_agent.tools.web.fetch import fetch  # noqa: PLC0415 - HTTP, with the first call

    return fetch(arguments, context, limits)


class SearchService(NamedTuple):
    """A service: its name, URL and key; one with a problem is not asked."""

    name: str
    url: str
    key: str = ""
    problem: str = ""


def search_service(settings: Settings) -> SearchService | None:
    """The configured service; None without one."""
    name, url = settings.get_str("web.search"), settings.get_str("web.search_url")
    if name == NO_SERVICE:
        return None
    if name == "searxng":
        problem = "" if url else "The user has to set web.search_url to the URL of the server."
        return SearchService(name, f"{url.rstrip('/')}/search", problem=problem)
    key = settings.get_secret(f"keys.{name}") or ""
    problem = "" if key else f"The user has to set keys.{name} to an API key."
    return SearchService(name, url or SERVICE_URLS[name], key, problem)


def search_tool(service: SearchService) -> Tool:
    """The tool."""
    return Tool(
        SEARCH_TOOL,
        "Search the web; returns titles, URLs and excerpts.",
        schema("query", query=parameter("string"), limit=parameter("integer")),
        reporting_errors(lambda arguments, _context: _search(arguments, service)),
        always_reads,
    )


def search_review(service: SearchService, is_plan: Callable[[], bool]) -> ReviewCall:
    """How calls are reviewed: the user has chosen the service, so only the mode plan asks."""

    def review(arguments: JsonObject, context: ToolContext) -> tuple[str, CommandReview] | Refuse:
        del context
        finding = RiskFinding("web-search", f"searches the web with {service.name}")
        findings = (finding,) if is_plan() else ()
        return f"{SEARCH_TOOL} {arguments.get('query')}", CommandReview(findings, True)

    return review


def _search(arguments: JsonObject, service: SearchService) -> str:
    from hermes_agent.tools.web.search import search  # noqa: PLC0415 - HTTP, with the first call

    if service.problem:
        raise ToolError(service.problem)
    return search(arguments, service)


class WebTools(NamedTuple):
    """The tools of a conversation, by its settings."""

    limits: WebLimits
    service: SearchService | None

    @classmethod
    def of_settings(cls, settings: Settings) -> WebTools:
        """The tools that the settings describe."""
        limits = WebLimits(
            tuple(settings.get_list("agent.allowed_hosts")),
            tuple(settings.get_list("web.private_hosts")),
        )
        return cls(limits, search_service(settings))

    def tools(self) -> list[Tool]:
        """The tools; a search only with a service."""
        searches = [] if self.service is None else [search_tool(self.service)]
        return [fetch_tool(self.limits), *searches]

    def reviews(self, is_plan: Callable[[], bool]) -> dict[str, ReviewCall]:
        """Functions that decide whether a call needs approval, by tool name."""
        reviews = {FETCH_TOOL: fetch_review(self.limits, is_plan)}
        if self.service is not None:
            reviews[SEARCH_TOOL] = search_review(self.service, is_plan)
        return reviews
