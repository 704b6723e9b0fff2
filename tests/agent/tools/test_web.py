"""`web_fetch` and `web_search` against real HTTP servers on loopback."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.permissions.approvals import Approvals
from hermes_agent.permissions.verdicts import Allow, NeedsApproval, Refuse
from hermes_agent.tools.base import ToolContext
from hermes_agent.tools.web.tools import SearchService, WebLimits, WebTools
from hermes_agent.turn_control import Cancel
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Answer = tuple[int, dict[str, str], bytes]

PAGE = b"""<html><head><title>Tea &amp; cups</title><style>p {}</style></head><body>
<nav><a href="/">Home</a></nav><main><h1>Tea</h1><p>Boil <b>water</b>, then
read <a href="https://example.org/more">more</a>.</p><ul><li>cup</li></ul>
<pre>a
  b</pre><script>alert(1)</script></main><footer>imprint</footer></body></html>"""


class Site:
    """A web server whose answers are set by path."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                site.requests.append((self.path, dict(self.headers), self.rfile.read(length)))
                status, headers, body = site.answers.get(
                    self.path.partition("?")[0], (404, {"Content-Type": "text/plain"}, b"nothing")
                )
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name of the base class

            def log_message(self, *_arguments: object) -> None:
                """Print nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.port = self._server.server_address[1]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    site = Site()
    yield site
    site.close()


def context(folder: Path) -> ToolContext:
    return ToolContext("s", "t", "c", folder, Cancel(), None, lambda _text: None)  # type: ignore[arg-type]


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(
        url: str, private: tuple[str, ...] = ("127.0.0.1", "localhost"), **arguments: Any
    ) -> dict[str, Any]:
        (tool,) = WebTools(WebLimits((), private), None).tools()
        result: dict[str, Any] = json.loads(tool.run({"url": url, **arguments}, context(tmp_path)))
        return result

    return run


def test_a_page_becomes_text_without_what_is_around_it(
    site: Site, fetch: Callable[..., dict[str, Any]]
) -> None:
    site.answers["/tea"] = (200, {"Content-Type": "text/html; charset=utf-8"}, PAGE)
    result = fetch(site.url("/tea"))
    assert result["title"] == "Tea & cups"
    assert result["text"] == (
        "# Tea\n\nBoil water, then read [more](https://example.org/more).\n\n- cup\n\n"
        "```\na\n  b\n```"
    )
    assert result["error"] is None
    _path, headers, _body = site.requests[0]
    assert headers["Host"] == f"127.0.0.1:{site.port}"
    assert headers["User-Agent"].startswith("Hermes/")


LINKS = b"""<base href="/docs/"><p><a href='a?x=1&amp;y=2'>rel</a> <a href="/root">root</a>
<a href="#part">part</a> <a href="javascript:x()">js</a> <a href="//cdn.example/z">cdn</a>
<a href="http://[bad">bad</a></p><a href="card"><h3>Title</h3></a>
<table><tr><th>Name</th><th>Size</th></tr><tr><td>a</td><td>1</td></tr></table>
<p>Call <code>f(x)</code>.</p>"""


def test_links_are_absolute_and_tables_stay(
    site: Site, fetch: Callable[..., dict[str, Any]]
) -> None:
    site.answers["/a/b"] = (200, {"Content-Type": "text/html"}, LINKS)
    root = site.url("")
    assert fetch(site.url("/a/b"))["text"].split("\n") == [
        f"[rel]({root}/docs/a?x=1&y=2) [root]({root}/root) part js [cdn](http://cdn.example/z) bad",
        "",
        "### Title",
        "",
        f"<{root}/docs/card>",
        "",
        "Name | Size",
        "---|---",
        "a | 1",
        "",
        "Call `f(x)`.",
    ]


@pytest.mark.parametrize(
    ("header", "head", "codec"),
    [
        ("text/html", "<meta charset=iso-8859-1>", "latin-1"),
        ("text/html", '<META http-equiv=x content="text/html; charset=windows-1251">', "cp1251"),
        ("text/html; charset=koi8-r", "<meta charset=utf-8>", "koi8-r"),
        ("text/html", "", "latin-1"),
        ("text/html", "", "utf-8"),
    ],
)
def test_a_page_is_read_in_its_encoding(
    site: Site, fetch: Callable[..., dict[str, Any]], header: str, head: str, codec: str
) -> None:
    text = "caf\u00e9" if codec in {"latin-1", "utf-8"} else "\u043f\u0440\u0438\u0432\u0435\u0442"
    page = f"<html><head>{head}</head><p>{text}</p></html>".encode(codec)
    site.answers["/p"] = (200, {"Content-Type": header}, page)
    assert fetch(site.url("/p"))["text"] == text


def test_a_long_text_is_read_in_parts(site: Site, fetch: Callable[..., dict[str, Any]]) -> None:
    body = "".join(f"{number:09}\n" for number in range(3000))
    site.answers["/long"] = (200, {"Content-Type": "text/plain"}, body.encode())
    first = fetch(site.url("/long"))
    second = fetch(site.url("/long"), offset=first["next_offset"])
    assert first["text"] + second["text"] == body
    assert "next_offset" not in second


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            (200, {"Content-Type": "application/pdf"}, b"%PDF"),
            "application/pdf (4 bytes), not text",
        ),
        ((404, {"Content-Type": "text/plain"}, b"no"), "HTTP status 404"),
    ],
)
def test_what_is_not_a_page_is_said(
    site: Site, fetch: Callable[..., dict[str, Any]], answer: Answer, error: str
) -> None:
    site.answers["/x"] = answer
    assert error in fetch(site.url("/x"))["error"]


def test_a_redirect_within_the_site_is_followed_and_one_to_another_host_is_not(
    site: Site, fetch: Callable[..., dict[str, Any]]
) -> None:
    site.answers["/a"] = (302, {"Location": "/b"}, b"")
    site.answers["/b"] = (200, {"Content-Type": "text/plain"}, b"here")
    site.answers["/c"] = (302, {"Location": site.url("/b", "localhost")}, b"")
    site.answers["/d"] = (302, {"Location": "/d"}, b"")
    assert fetch(site.url("/a"))["text"] == "here"
    assert fetch(site.url("/c"))["redirect"] == site.url("/b", "localhost")
    assert "redirects too often" in fetch(site.url("/d"))["error"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "127.1"],  # noqa: S104
)
def test_this_machine_is_not_reached_unless_it_is_allowed(
    site: Site, fetch: Callable[..., dict[str, Any]], host: str
) -> None:
    site.answers["/"] = (200, {"Content-Type": "text/plain"}, b"secret")
    result = fetch(site.url("/", host), private=())
    assert "private network" in result["error"] or "unknown" in result["error"]
    assert site.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://u:p@example.org/",
        "http://",
        "http://a:b/",
        "http://127.0.0.1/a\x7fb",
        "http://127.0.0.1/a\0b",
        f"http://127.0.0.1/{'a' * 70_000}",
    ],
)
def test_other_urls_are_refused(fetch: Callable[..., dict[str, Any]], url: str) -> None:
    assert fetch(url)["error"]


@pytest.mark.parametrize("charset", ["hex", "idna", "undefined", "none-such"])
def test_a_page_with_an_unusable_encoding_is_read_as_utf_8(
    site: Site, fetch: Callable[..., dict[str, Any]], charset: str
) -> None:
    kind = {"Content-Type": f"text/plain; charset={charset}"}
    site.answers["/x"] = (200, kind, "tëa".encode())
    assert fetch(site.url("/x"))["text"] == "tëa"


@pytest.mark.parametrize("kind", ["", "application/yaml", "application/toml"])
def test_text_is_read_also_under_less_common_types(
    site: Site, fetch: Callable[..., dict[str, Any]], kind: str
) -> None:
    site.answers["/x"] = (200, {"Content-Type": kind}, b"tea: green")
    assert fetch(site.url("/x"))["text"] == "tea: green"


def test_a_redirect_to_what_is_no_url_is_said(
    site: Site, fetch: Callable[..., dict[str, Any]]
) -> None:
    site.answers["/x"] = (302, {"Location": "http://[tea"}, b"")
    assert "redirects to 'http://[tea', which is not a URL" in fetch(site.url("/x"))["error"]


@contextmanager
def slow_server(received: Callable[[], object] = lambda: None) -> Iterator[str]:
    """A server that sends its headers byte by byte, for ten seconds."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection, suppress(OSError):
                connection.recv(10_000)
                received()
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                for _ in range(200):
                    if is_over.wait(0.05):
                        return
                    connection.sendall(b"a")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        is_over.set()
        thread.join()


def test_slow_headers_count_towards_the_time_limit(
    fetch: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_agent.tools.web.fetch.MAX_SECONDS", 1.0)
    with slow_server() as url:
        assert fetch(url)["error"] == "127.0.0.1 is too slow: not read within 1 s."


def test_a_stopped_turn_does_not_wait_for_a_slow_server(tmp_path: Path) -> None:
    call = context(tmp_path)
    (tool,) = WebTools(WebLimits((), ("127.0.0.1",)), None).tools()
    with slow_server(call.cancel.request) as url:
        assert json.loads(tool.run({"url": url}, call))["error"] == "Interrupted."


def test_a_page_without_end_is_cut(
    site: Site, fetch: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_agent.tools.web.fetch.MAX_BYTES", 1000)
    site.answers["/big"] = (200, {"Content-Type": "text/plain"}, b"x" * 5000)
    result = fetch(site.url("/big"))
    assert (len(result["text"]), "first 1,000 bytes" in result["cut"]) == (1000, True)


def verdict(
    tmp_path: Path, tools: WebTools, mode: Any, tool: str, **arguments: str
) -> Allow | NeedsApproval | Refuse:
    approvals = Approvals(
        mode, is_sandboxed=True, call_reviews=tools.reviews(lambda: mode == "plan")
    )
    return approvals.decide(tool, dict(arguments), context(tmp_path))


def test_a_host_needs_approval_unless_the_settings_allow_it(tmp_path: Path) -> None:
    tools = WebTools(WebLimits(("*.example.org",), ()), SearchService("brave", "https://x", "k"))
    asked = verdict(tmp_path, tools, "workspace", "web_fetch", url="https://other.net/a?b=c")
    assert isinstance(asked, NeedsApproval)
    assert asked.request.pattern_keys == ("web:other.net",)
    assert asked.request.command == "web_fetch https://other.net/a?b=c"
    allowed = {"url": "https://docs.example.org/x"}
    assert isinstance(verdict(tmp_path, tools, "workspace", "web_fetch", **allowed), Allow)
    assert isinstance(verdict(tmp_path, tools, "plan", "web_fetch", **allowed), NeedsApproval)
    assert isinstance(verdict(tmp_path, tools, "workspace", "web_search", query="tea"), Allow)
    assert isinstance(verdict(tmp_path, tools, "plan", "web_search", query="tea"), NeedsApproval)
    assert isinstance(verdict(tmp_path, tools, "full", "web_fetch", url="https://o.net"), Allow)
    assert isinstance(verdict(tmp_path, tools, "full", "web_fetch", url="file:///x"), Refuse)


ENTRY = {"title": "Tea", "url": "https://tea.example", "content": " hot\n tea ", "description": "d"}


@pytest.mark.parametrize(
    ("settings", "body", "snippet", "sent"),
    [
        ("web: {search: searxng, search_url: URL}", {"results": [ENTRY]}, "hot tea", "format=json"),
        (
            "web: {search: brave, search_url: URL/brave}",
            {"web": {"results": [ENTRY]}},
            "d",
            "count=3",
        ),
        ("web: {search: tavily, search_url: URL/tavily}", {"results": [ENTRY]}, "hot tea", ""),
    ],
)
def test_each_service_is_asked_in_its_own_way(
    site: Site, tmp_path: Path, hermes_home: Path, monkeypatch: pytest.MonkeyPatch,
    settings: str, body: dict[str, Any], snippet: str, sent: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    monkeypatch.setenv("TAVILY_API_KEY", "tavily-key")
    (hermes_home / "config.yaml").write_text(settings.replace("URL", site.url("")))
    answer = (200, {"Content-Type": "application/json"}, json.dumps(body).encode())
    site.answers = dict.fromkeys(("/search", "/brave", "/tavily"), answer)
    _fetch, tool = WebTools.of_settings(ConfigFile.of_home().settings()).tools()
    found = json.loads(tool.run({"query": "green tea", "limit": 3}, context(tmp_path)))
    assert found["results"] == [{"title": "Tea", "url": "https://tea.example", "snippet": snippet}]
    path, headers, posted = site.requests[0]
    assert sent in path
    assert "green" in path or json.loads(posted) == {"query": "green tea", "max_results": 3}
    keys = {headers.get("X-Subscription-Token"), headers.get("Authorization")}
    assert keys in ({None}, {"brave-key", None}, {"Bearer tavily-key", None})


def test_a_service_that_fails_or_lacks_its_key_says_so(
    site: Site, tmp_path: Path, hermes_home: Path
) -> None:
    config = hermes_home / "config.yaml"
    config.write_text(f"web: {{search: searxng, search_url: {site.url('')}}}")
    _fetch, tool = WebTools.of_settings(ConfigFile.of_home().settings()).tools()
    failed = json.loads(tool.run({"query": "tea"}, context(tmp_path)))
    assert failed["error"] == "searxng answered with HTTP status 404."
    config.write_text("web: {search: brave}")
    _fetch, tool = WebTools.of_settings(ConfigFile.of_home().settings()).tools()
    failed = json.loads(tool.run({"query": "tea"}, context(tmp_path)))
    assert failed["error"] == "The user has to set keys.brave to an API key."


@pytest.mark.parametrize(
    ("service", "answer", "advice"),
    [
        ("searxng", (403, {}, b""), "add json to search.formats in its settings.yml"),
        ("searxng", (301, {"Location": "https://tea/"}, b""), "redirects to https://tea/"),
        ("brave", (401, {}, b""), "The user has to check keys.brave."),
        ("tavily", (429, {}, b""), "Too many requests"),
    ],
)
def test_a_misconfigured_service_is_reported_with_what_to_do(
    site: Site, tmp_path: Path, service: str, answer: Answer, advice: str
) -> None:
    site.answers["/search"] = answer
    chosen = SearchService(service, site.url("/search"), "" if service == "searxng" else "k")
    _fetch, tool = WebTools(WebLimits(), chosen).tools()
    assert advice in json.loads(tool.run({"query": "tea"}, context(tmp_path)))["error"]


def test_a_search_url_that_is_none_is_reported(tmp_path: Path) -> None:
    _fetch, tool = WebTools(WebLimits(), SearchService("searxng", "http://a/\x7f")).tools()
    failed = json.loads(tool.run({"query": "tea"}, context(tmp_path)))
    assert failed["error"].startswith("web.search_url is not a URL")
