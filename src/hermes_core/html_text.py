"""HTML as plain text: paragraphs, headings, lists, links and quotations stay recognizable.

Whatever was sent, the time is proportional to its length: the parser of the standard library reads
the rest of a document again for every `<` of a tag or comment that does not end.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from typing import Final

PREFORMATTED: Final = "pre"
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
TAG: Final = re.compile(r"<[^<>]*>")
COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
LONG_TAG: Final = re.compile(r"<[^<>]{2000,}>")  # e.g. an embedded picture
UNFINISHED_TAG: Final = re.compile(r"<(?![^<>]*>)")


def html_to_text(html: str, *, is_page: bool = False) -> str:
    """The text of an HTML document; a very long one is cut.

    Of a web page, navigation is left out, and everything around the main part if it has one.
    """
    html = LONG_TAG.sub("", COMMENT.sub("", html[: MAX_PAGE_CHARS if is_page else MAX_HTML_CHARS]))
    html = UNFINISHED_TAG.sub("&lt;", html)
    if is_page:
        html = max(MAIN_PART.findall(html), key=len, default=html)
    parser = TextExtractor(is_page=is_page)
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

    def __init__(self, *, is_page: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self._is_page = is_page
        self._lines: list[str] = []
        self._line = ""
        self._open: list[tuple[str, str]] = []  # tags, and what each of them changes
        self._open_tags: Counter[str] = Counter()
        self._effects: Counter[str] = Counter()
        self._links: list[tuple[str, int]] = []  # URLs, and where their texts start

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
        effect = HIDDEN if self._is_page and tag in AROUND_TAGS else _effect(tag, attributes)
        self._open.append((tag, effect))
        self._open_tags[tag] += 1
        self._effects[effect] += 1
        if self._is_page and tag in HEADING_TAGS:
            self._line = "#" * int(tag[1]) + " "
        if tag == "li":
            self._line = "- "
        elif tag == "a" and not self._is_hidden:
            self._links.append((attributes.get("href", ""), len(self._line)))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element; elements that were left open inside it end, too."""
        if not self._open_tags[tag]:
            return
        if tag == "a" and self._links:
            self._end_link(*self._links.pop())
        if tag in LINE_TAGS | PARAGRAPH_TAGS:
            self._end_line()
        elif tag in {"td", "th"}:
            self._add(" ")
        while self._close_last() != tag:
            pass
        if tag in PARAGRAPH_TAGS:
            self._lines.append(self._prefix)

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
        is_shown = url.startswith(("http://", "https://")) and url.rstrip("/") != label.rstrip("/")
        if is_shown and not self._is_hidden:
            self._line += f" ({url})"


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
