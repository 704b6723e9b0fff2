"""HTML as plain text, and web pages as Markdown: what a text consists of stays recognizable.

Whatever was sent, the time is proportional to its length: the parser of the standard library reads
the rest of a document again for every `<` of a tag or comment that does not end.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

PREFORMATTED: Final = "pre"
FENCE: Final = "```"
HTTP: Final = ("http://", "https://")
HIDDEN: Final = "hidden"
QUOTE: Final = "quote"
MAX_DEPTH: Final = 10  # of quotations
MAX_HTML_CHARS: Final = 500_000
MAX_PAGE_CHARS: Final = 3_000_000
VOID_TAGS: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
HIDDEN_TAGS: Final = frozenset({"head", "script", "style", "template", "title", "noscript"})
PARAGRAPH_TAGS: Final = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "blockquote", "pre"}
)
HEADING_TAGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
AROUND_TAGS: Final = frozenset(
    {"nav", "aside", "footer", "form", "button", "select", "svg", "dialog"}
)
LINE_TAGS: Final = frozenset({"div", "li", "tr", "section", "article", "header", "footer", "dt"})
QUOTE_CLASSES: Final = ("gmail_quote", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote")
HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
MAIN_PART: Final = re.compile(r"<main\b[^<>]*>.*?(?:</main>|\Z)", re.DOTALL | re.IGNORECASE)
TITLE: Final = re.compile(r"<title\b[^<>]*>([^<]*)</title>", re.IGNORECASE)
BASE: Final = re.compile(r"<base\b[^<>]*\bhref\s*=\s*[\"']?([^\"'\s<>]+)", re.IGNORECASE)
TAG: Final = re.compile(r"<[^<>]*>")
COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
LONG_TAG: Final = re.compile(r"<[^<>]{2000,}>")  # e.g. an embedded picture
UNFINISHED_TAG: Final = re.compile(r"<(?![^<>]*>)")


def html_to_text(html: str) -> str:
    """The text of an HTML document; a very long one is cut."""
    return _extracted(_closed(html[:MAX_HTML_CHARS]), TextExtractor())


def page_to_markdown(html: str, url: str) -> str:
    """A web page as Markdown with absolute links; a very long one is cut.

    Navigation is left out, and everything around the main part if it has one.
    """
    html = _closed(html[:MAX_PAGE_CHARS])
    base = BASE.search(html)
    main = max(MAIN_PART.findall(html), key=len, default=html)
    return _extracted(main, PageExtractor(_joined(url, unescape(base[1])) if base else url))


def _closed(html: str) -> str:
    """A document without comments, long tags, and tags that do not end."""
    return UNFINISHED_TAG.sub("&lt;", LONG_TAG.sub("", COMMENT.sub("", html)))


def _extracted(html: str, parser: TextExtractor) -> str:
    try:
        parser.feed(html)
        parser.close()
    except (AssertionError, ValueError):  # of malformed declarations
        return unescape(TAG.sub(" ", html)).strip()
    return parser.text()


def html_title(html: str) -> str:
    """The title of an HTML document; empty if it has none."""
    found = TITLE.search(html[:MAX_HTML_CHARS])
    return " ".join(unescape(found[1]).split()) if found else ""


class TextExtractor(HTMLParser):
    """Collects the lines of a document; quoted lines start with `>`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._line = ""
        self._open: list[tuple[str, str]] = []  # tags, and what each of them changes
        self._open_tags: Counter[str] = Counter()
        self._effects: Counter[str] = Counter()
        self._links: list[tuple[str, int, int]] = []  # URLs, and where their texts start

    def text(self) -> str:
        """The text so far."""
        self._end_line()
        return "\n".join(_with_single_gaps("\n".join(self._lines).split("\n"))).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the start of an element."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "br":
            self._end_line()
        elif tag == "img" and not self._is_hidden:
            self._add(attributes.get("alt", ""))
        if tag in VOID_TAGS:
            return
        if tag in LINE_TAGS | PARAGRAPH_TAGS:
            self._start_block(tag)
        effect = self._effect(tag, attributes)
        self._open.append((tag, effect))
        self._open_tags[tag] += 1
        self._effects[effect] += 1
        self._begin(tag, attributes)

    def _effect(self, tag: str, attributes: dict[str, str]) -> str:
        """What an element does to the text in it."""
        return _effect(tag, attributes)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Add what marks the start of an element."""
        if tag == "li":
            self._line = "- "
        elif tag == "a" and not self._is_hidden:
            self._links.append((attributes.get("href", ""), len(self._lines), len(self._line)))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element; elements that were left open inside it end, too."""
        if not self._open_tags[tag]:
            return
        if tag == "a" and self._links:
            url, lines, start = self._links.pop()
            if not self._is_hidden:
                self._end_link(url, start if lines == len(self._lines) else len(self._line))
        self._end(tag)
        if tag in LINE_TAGS | PARAGRAPH_TAGS:
            self._end_line()
        while self._close_last() != tag:
            pass
        if tag in PARAGRAPH_TAGS:
            self._lines.append(self._prefix)

    def _end(self, tag: str) -> None:
        """Add what marks the end of an element."""
        if tag in {"td", "th"}:
            self._add(" ")

    def _close_last(self) -> str:
        tag, effect = self._open.pop()
        self._open_tags[tag] -= 1
        self._effects[effect] -= 1
        return tag

    def handle_data(self, data: str) -> None:
        """Add text; white space counts only in preformatted text."""
        if self._is_hidden:
            return
        if not self._open_tags[PREFORMATTED]:
            self._add(re.sub(r"\s+", " ", data))
            return
        first, *others = data.split("\n")
        self._line += first
        for line in others:
            self._end_line()
            self._line = line

    @property
    def _is_hidden(self) -> bool:
        return self._effects[HIDDEN] > 0

    @property
    def _prefix(self) -> str:
        depth = self._effects[QUOTE]
        return ">" * min(depth, MAX_DEPTH) + " " if depth else ""

    def _add(self, text: str) -> None:
        self._line += text.lstrip() if not self._line or self._line.endswith(" ") else text

    def _start_block(self, tag: str) -> None:
        if self._line.strip(" -"):
            self._end_line()
        if tag in PARAGRAPH_TAGS:
            self._lines.append(self._prefix)

    def _end_line(self) -> None:
        self._lines.append(f"{self._prefix}{self._line.rstrip()}".rstrip(" "))
        self._line = ""

    def _end_link(self, url: str, start: int) -> None:
        """Add the URL of a link whose text is not the URL."""
        label = self._line[start:].strip()
        if url.startswith(HTTP) and url.rstrip("/") != label.rstrip("/"):
            self._line += f" ({url})"


class PageExtractor(TextExtractor):
    """Collects the lines of a web page as Markdown."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self._headings = 0  # of the current row of a table

    def _effect(self, tag: str, attributes: dict[str, str]) -> str:
        return HIDDEN if tag in AROUND_TAGS else super()._effect(tag, attributes)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        super()._begin(tag, attributes)
        if tag in HEADING_TAGS:
            self._line = "#" * int(tag[1]) + " "
        elif tag == PREFORMATTED and not self._is_hidden:
            self._line = FENCE
            self._end_line()
        elif tag == "tr":
            self._headings = 0
        elif tag == "th":
            self._headings += 1
        elif tag == "code" and not self._open_tags[PREFORMATTED]:
            self._add("`")

    def _end(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._add(" | ")
        elif tag == "tr":
            self._line = self._line.rstrip(" |")
            if self._headings > 1:
                self._end_line()
                self._line = "|".join(["---"] * self._headings)
        elif tag == PREFORMATTED and not self._is_hidden:
            if self._line:
                self._end_line()
            self._line = FENCE
        elif tag == "code" and not self._open_tags[PREFORMATTED]:
            self._add("`")

    def _end_link(self, url: str, start: int) -> None:
        """Make the text of a link one with an absolute URL; of a longer text, add the URL."""
        label, target = self._line[start:].strip(), _joined(self._base, url)
        if url.startswith("#") or not target.startswith((*HTTP, "mailto:")):
            return
        if label:
            self._line = f"{self._line[:start]}[{label}]({target})"
        else:
            self._add(f"<{target}>")


def _joined(base: str, url: str) -> str:
    """A URL of a page as an absolute one; empty if it is none."""
    try:
        return urljoin(base, url.strip())
    except ValueError:
        return ""


def _effect(tag: str, attributes: dict[str, str]) -> str:
    """What an element does to the text in it."""
    if tag in HIDDEN_TAGS or HIDDEN_STYLE.search(attributes.get("style", "")):
        return HIDDEN
    classes = attributes.get("class", "").split()
    is_quote = tag == "blockquote" or any(name in classes for name in QUOTE_CLASSES)
    return QUOTE if is_quote else ""


def _with_single_gaps(lines: list[str]) -> list[str]:
    """The lines with one empty line instead of several, and of empty quoted lines before it."""
    result: list[str] = []
    gap: list[str] = []
    for line in lines:
        if not line:
            gap = [""]
        elif not line.strip("> "):
            gap.append(line)
        else:
            result += [*gap, line]
            gap = []
    return result
