"""Sender verification by the Authentication-Results header of the own mail server (RFC 8601).

Anyone can write any From header. The receiving server checks SPF, DKIM and DMARC and writes the
results into a header at the top of the message; its first word, the authserv-id, names the server.
A sender can add such a header as well, but only below those of the receiving server: only the
topmost one counts, and only if it has the configured name.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gateway.platforms.email.addresses import domain_of

MAX_HEADER_CHARS: Final = 20_000
# In a header without comments: `name=value`, where the value may be quoted, or an address whose
# local part is quoted.
_VALUE = r'(?:"(?:[^"\\]|\\.)*"(?:@[^\s;"]+)?|[^\s;"]+)'
PAIR: Final = re.compile(
    rf"\s*([A-Za-z0-9._-]+)(?:\s*/\s*[0-9]+)?\s*=\s*({_VALUE})(?=\s|$)", re.DOTALL
)
STATEMENT: Final = re.compile(r'((?:"(?:[^"\\]|\\.)*"|[^";])*)(?:;|$)', re.DOTALL)
DOMAIN_PROPERTIES: Final = {"spf": ("smtp.mailfrom",), "dkim": ("header.d", "header.i")}


class MethodResult(NamedTuple):
    """The result of one method, e.g. `dkim=pass header.d=example.org`."""

    method: str
    result: str
    properties: dict[str, str]


class AuthenticationResults(NamedTuple):
    """A parsed Authentication-Results header."""

    authserv_id: str
    results: tuple[MethodResult, ...]


def refusal(headers: list[str], authserv_ids: tuple[str, ...], address: str) -> str:
    """Why the server does not vouch for a sender; empty if it does."""
    if not headers:
        return "no Authentication-Results header"
    parsed = parse_results(headers[0])
    if parsed is None:
        return "unreadable Authentication-Results header"
    if not any(_matches(parsed.authserv_id, name) for name in authserv_ids):
        return f"Authentication-Results of {parsed.authserv_id!r}, not of the own server"
    return _failure(parsed.results, domain_of(address))


def _failure(results: tuple[MethodResult, ...], domain: str) -> str:
    """Why the results do not confirm a domain; empty if they do."""
    dmarc = [item for item in results if item.method == "dmarc"]
    if any(not _is_about(item, domain) for item in dmarc):
        return "dmarc result for another domain"
    if any(item.result in {"fail", "reject", "quarantine"} for item in dmarc):
        return "dmarc=fail"
    is_passed = any(item.result == "pass" for item in dmarc)
    if is_passed or any(_is_aligned(item, domain) for item in results):
        return ""
    return f"no passed dmarc, dkim or spf check for {domain}"


def parse_results(header: str) -> AuthenticationResults | None:
    """Parse a header; None if it does not follow the grammar."""
    if len(header) > MAX_HEADER_CHARS:
        return None
    plain = _without_comments(header)
    if plain is None:
        return None
    first, *others = STATEMENT.findall(plain)
    names = first.split()
    if not names or "=" in names[0]:  # Microsoft leaves the name out
        return None
    results = map(_method_result, others)
    return AuthenticationResults(names[0].lower(), tuple(item for item in results if item))


def _without_comments(text: str) -> str | None:
    """A header without its comments; None if a quotation or a comment does not end."""
    result: list[str] = []
    depth, is_quoted, is_escaped = 0, False, False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif char == "\\" and (is_quoted or depth):
            is_escaped = True
        elif char == '"' and not depth:
            is_quoted = not is_quoted
        elif not is_quoted and char == "(":
            depth += 1
        elif not is_quoted and char == ")" and depth:
            depth -= 1
            result.append(" ")
            continue
        if not depth:
            result.append(char)
    return None if depth or is_quoted else "".join(result)


def _method_result(statement: str) -> MethodResult | None:
    """A method with its result and properties; None if anything in the statement is unclear."""
    pairs: list[tuple[str, str]] = []
    end = len(statement.rstrip())
    position = 0
    while position < end:
        match = PAIR.match(statement, position)
        if match is None:
            return None
        pairs.append((match[1].lower(), match[2].lower()))
        position = match.end()
    properties = dict(pairs[1:])
    if not pairs or len(properties) != len(pairs) - 1:
        return None
    return MethodResult(*pairs[0], properties)


def _matches(authserv_id: str, name: str) -> bool:
    """Whether a server has the configured name; `*.` stands for any host of a domain."""
    return authserv_id == name or (name.startswith("*.") and authserv_id.endswith(name[1:]))


def _is_about(result: MethodResult, domain: str) -> bool:
    """Whether a dmarc result is about the domain of the sender; some servers do not say."""
    return result.properties.get("header.from", domain).rpartition("@")[2] == domain


def _is_aligned(result: MethodResult, domain: str) -> bool:
    """Whether a check has passed for exactly the domain of the sender."""
    names = DOMAIN_PROPERTIES.get(result.method, ())
    stated = [result.properties[name] for name in names if name in result.properties]
    return result.result == "pass" and bool(stated) and domain_of(f"@{stated[0]}") == domain
