"""Redaction of secrets in exports.

JSON is decoded, its strings are checked by content and by name, and it is encoded again,
so that escapes do not hide a secret and JSON stays valid.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import has_lone_surrogate
from hermes_state.messages.rows import JSON_PREFIX

if TYPE_CHECKING:
    from hermes_state.engine.values import SqlValue
    from hermes_state.portable.export_schema import ColumnRow

# Excludes placeholders in the position of a secret: variables, masks, redacted values.
_NOT_A_PLACEHOLDER = r"(?![$<{*\[%(]|(?i:x{3}|\.{3}|your|redacted|none\b|null\b|true\b|false\b))"
_NAME_PATTERN = (
    r"(?:api[_-]?key|apikey|x-api-key|secret[_-]?key|client[_-]?secret|access[_-]?key"
    r"|access[_-]?token|refresh[_-]?token|auth[_-]?token|id[_-]?token|bot[_-]?token|token|secret"
    r"|password|passwd|passphrase|private[_-]?key)"
)
SECRET_NAME: Final = re.compile(
    rf"(?i)(?:.*[_.-])?(?:{_NAME_PATTERN}|authorization|cookie|credentials?)", re.DOTALL
)


class SecretPattern(NamedTuple):
    """A kind of secret, with an example and a counter-example for the tests."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    example: str
    counter_example: str


def _value(bare: str) -> str:
    """A pattern for a quoted value, or for an unquoted one that matches *bare*."""
    return (
        rf"(?:\"{_NOT_A_PLACEHOLDER}(?P<a>[^\"\n]{{4,4096}})\"|'{_NOT_A_PLACEHOLDER}(?P<b>[^'\n]{{4,4096}})'"
        rf"|{_NOT_A_PLACEHOLDER}(?P<c>{bare}))"
    )


def _secret(
    kind: str, hints: str, pattern: str, example: str, counter_example: str
) -> SecretPattern:
    return SecretPattern(
        kind, tuple(hints.split("|")), re.compile(pattern), example, counter_example
    )


def _prefixed(
    kind: str, hints: str, pattern: str, example: str, counter_example: str
) -> SecretPattern:
    """A token that is recognized by its prefix."""
    return _secret(kind, hints, rf"(?<![A-Za-z0-9_]){pattern}", example, counter_example)


_HEX_EXAMPLE = "0123456789abcdef" * 2
_LONG_EXAMPLE = "a1B2c3D4e5F6g7H8i9J0" * 3

SECRET_PATTERNS: Final = (
    _secret(
        "private-key", "PRIVATE KEY",
        r"(?s)-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIj\n-----END PUBLIC KEY-----",
    ),
    _prefixed("age-key", "AGE-SECRET-KEY", r"AGE-SECRET-KEY-1[0-9A-Z]{50,70}",
              "AGE-SECRET-KEY-1" + "Q2W3E4R5T6" * 6, "AGE-SECRET-KEY is the prefix"),
    _prefixed("api-key", "sk-", r"sk-(?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,300}",
              "sk-ant-api03-" + _LONG_EXAMPLE, "sk-learn-is-a-library-for-python"),
    _prefixed("stripe-key", "k_live_|k_test_|whsec_",
              r"(?:[sr]k_(?:live|test)_|whsec_)[0-9A-Za-z]{16,200}",
              "sk_live_" + _LONG_EXAMPLE[:24], "task_live_update"),
    _prefixed("aws-key", "AKIA|ASIA|ABIA|ACCA",
              r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])",
              "AKIAIOSFODNN7EXAMPLE", "ASIA is a continent"),
    _prefixed("github-token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
              r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
              "ghp_" + _LONG_EXAMPLE[:36], "ghp_short"),
    _prefixed("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,300}",
              "glpat-" + _LONG_EXAMPLE[:20], "glpat-docs"),
    _prefixed("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,300}",
              "xoxb-1234567890-abcdefghij", "xoxo, your friend"),
    _secret("slack-webhook", "hooks.slack.com",
            r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9+/_-]{20,300})",
            "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijkl",
            "see hooks.slack.com/services for help"),
    _prefixed("google-key", "AIza|ya29.|GOCSPX-",
              r"(?:AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,1000}"
              r"|GOCSPX-[0-9A-Za-z_-]{20,100})",
              "AIza" + _LONG_EXAMPLE[:35], "AIzawa is a name"),
    _prefixed("service-token", "hf_|npm_|pypi-|gsk_|xai-|pplx-|r8_|_v1_|hvs.|hvb.|lin_api_|ntn_",
              r"(?:hf_[A-Za-z0-9]{30,100}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,500}"
              r"|gsk_[A-Za-z0-9]{40,100}|xai-[A-Za-z0-9]{40,200}|pplx-[A-Za-z0-9]{40,100}"
              r"|r8_[A-Za-z0-9]{30,100}|do[opr]_v1_[0-9a-f]{64}|hv[bs]\.[A-Za-z0-9_-]{20,300}"
              r"|lin_api_[A-Za-z0-9]{30,100}|ntn_[A-Za-z0-9]{30,100})",
              "hf_" + _LONG_EXAMPLE[:34], "hf_hub_download and npm_config_cache"),
    _prefixed("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?![0-9a-z])",
              "dapi" + _HEX_EXAMPLE, "dapi is an interface"),
    _prefixed("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,80}\.[A-Za-z0-9_-]{16,80}",
              f"SG.{_LONG_EXAMPLE[:22]}.{_LONG_EXAMPLE[:43]}", "SG.Common.Interfaces"),
    _prefixed("telegram-token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])",
              "123456789:AA" + _LONG_EXAMPLE[:33], "12345678:AAA is a score"),
    _prefixed("discord-token", ".",
              r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w.-])",
              f"M{_LONG_EXAMPLE[:23]}.AbCdEf.{_LONG_EXAMPLE[:30]}", "My.domain.example is not one"),
    _prefixed("jwt", "eyJ",
              r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{0,4096}",
              "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJhbGciOiJIUzI1NiJ9 alone"),
    _secret("authorization", "uthorization|UTHORIZATION",
            r"(?i)authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
            r"(?:(?:bearer|basic|token|digest|key)\s{1,4})?"
            rf"(?P<secret>{_NOT_A_PLACEHOLDER}[^\s\"'\\,;]{{6,4096}})",
            "Authorization: Basic dXNlcjpwYXNz", "Authorization: ${HEADER}"),
    _secret("bearer", "earer |EARER ",
            r"(?i)(?<![a-z])bearer\s{1,4}(?P<secret>(?=[A-Z._~+/-]{0,400}\d)[A-Z0-9._~+/-]{16,4096}=*)",
            "curl -H 'X-Auth: Bearer " + _LONG_EXAMPLE + "'",
            "the bearer of identification-papers"),
    _secret("cookie", "ookie", r"(?i)(?<![a-z])cookie[\"']?:\s{0,4}[\"']?"
            r"(?P<secret>[^\s=;\"':]{1,100}=[^\n\"']{8,4096})",
            "Set-Cookie: session=abcdef123456; Path=/", "cookie: chocolate chip"),
    _secret("url-password", "://",
            r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://[^\s/?#:@\"'<>]{0,256}:"
            r"(?P<secret>[^\s/?#@\"'<>]{1,256})@",
            "postgres://app:hunter2@db.example/app", "http://localhost:8080/@me"),
    _secret("url-secret", "=",
            r"(?i)[?&](?:access_token|api_?key|auth|client_secret|key|password|secret|sig|signature"
            r"|token|x-amz-signature|x-amz-security-token)="
            rf"(?P<secret>{_NOT_A_PLACEHOLDER}[^\s&#\"'<>\\]{{6,4096}})",
            "https://api.example/v1?api_key=abcdef123456&x=1", "https://shop.example/?keys=piano88"),
    _secret("environment", "=",
            r"(?<![A-Za-z0-9_])[A-Z0-9_]{0,64}(?:SECRET|TOKEN(?!S|IZ|_?(?:COUNT|LIMIT|BUDGET))|PASSWORD"
            r"|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)[A-Z0-9_]{0,64}"
            r"[ \t]{0,4}=[ \t]{0,4}"
            + _value(r"[^\s\"'`;,)\\]{4,4096}"),
            "export MY_API_KEY=abcd-1234", "MAX_TOKENS=4096 TOKEN_LIMIT=100000 API_KEY=$OTHER"),
    _secret("named-value", "oken|ecret|assw|assphrase|ey",
            rf"(?i)(?<![a-z0-9-]){_NAME_PATTERN}[\"']?\s{{0,4}}(?::|=(?!=))\s{{0,4}}"
            + _value(r"(?=[^\s\"'`;,(){}\[\]\\]{0,400}?\d)[^\s\"'`;,(){}\[\]\\]{6,4096}"),
            "password: 'correct horse'", "password: required, token: str, key: value1234"),
    _secret("flag", "--",
            r"--(?:api-key|password|passphrase|secret|token|access-token|auth-token)"
            r"(?:=|[ \t]{1,4})"
            + _value(r"(?!-)[^\s\"'`;,)\\]{4,4096}"),
            "login --password hunter22", "--token-limit 5000 --password -p --token $TOKEN"),
    _secret("curl-user", "curl",
            r"curl\s[^\n|]{0,500}?(?<=\s)(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"'$]{1,100}:"
            r"(?P<secret>(?!\$)[^\s\"']{3,200})",
            "curl -s -u me:hunter2 https://example.org", "curl -u $USER:$PASS https://example.org"),
)  # fmt: skip

MAX_JSON_DEPTH: Final = 16
MIN_SECRET_CHARACTERS: Final = 4
MAX_PASSES: Final = 5
# Columns that contain identifiers instead of text.
UNREDACTED_COLUMNS: Final = frozenset(
    {"id", "role", "source", "parent_session_id", "tool_call_id", "tool_name", "session_key",
     "end_reason", "finish_reason", "display_kind", "model", "billing_provider", "title_source",
     "hermes_uid", "reason"}
)  # fmt: skip
_PLACEHOLDER: Final = re.compile(r"(?i)[$<{*\[%(]|x{3}|\.{3}|your|redacted|none$|null$")


class Redactor:
    """Replaces every secret it recognises by `[redacted:kind]`."""

    def row(self, row: ColumnRow) -> ColumnRow:
        """A row with its texts redacted."""
        return {
            name: value if name in UNREDACTED_COLUMNS else self._column(value)
            for name, value in row.items()
        }

    def _column(self, value: SqlValue) -> SqlValue:
        if isinstance(value, bytes):  # of another program; replaced only if it has a secret
            text = value.decode("utf-8", "replace")
            redacted = self.text(text)
            return value if redacted == text else redacted
        return self.stored(value) if isinstance(value, str) else value

    def stored(self, text: str) -> str:
        """The text of a column, which may have the JSON prefix."""
        if text.startswith(JSON_PREFIX):
            return JSON_PREFIX + self._text(text[len(JSON_PREFIX) :], 0, is_ascii=True)
        return self.text(text)

    def text(self, text: str) -> str:
        """*text* without secrets; JSON stays valid."""
        return self._text(text, 0, is_ascii=False)

    def value(self, value: Any) -> Any:
        """A decoded value without secrets."""
        return self._value(value, 0)

    def _text(self, text: str, depth: int, *, is_ascii: bool) -> str:
        if text[:1] in ("{", "[") and depth < MAX_JSON_DEPTH:
            try:
                decoded = json.loads(text)
            except (ValueError, RecursionError):
                return redact(text)
            redacted = self._value(decoded, depth + 1)
            if redacted == decoded:
                return text
            redacted_text = json.dumps(redacted, ensure_ascii=is_ascii)
            return json.dumps(redacted) if has_lone_surrogate(redacted_text) else redacted_text
        return redact(text)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, depth, is_ascii=False)
        if depth >= MAX_JSON_DEPTH:
            return value
        if isinstance(value, list):
            return [self._value(each, depth + 1) for each in value]
        if isinstance(value, dict):
            return {
                redact(name): self._named(name, each, depth + 1) for name, each in value.items()
            }
        return value

    def _named(self, name: str, value: Any, depth: int) -> Any:
        """Redact a value whose name identifies a secret."""
        is_secret = (
            isinstance(value, str)
            and len(value) >= MIN_SECRET_CHARACTERS
            and SECRET_NAME.fullmatch(name[-200:]) is not None
            and _PLACEHOLDER.match(value) is None
        )
        return "[redacted:named-value]" if is_secret else self._value(value, depth)


def redact(text: str) -> str:
    """Plain text without secrets."""
    for _ in range(MAX_PASSES):
        redacted = _pass(text)
        if redacted == text:
            break
        text = redacted  # a replacement may expose a match of another pattern
    return text


def _pass(text: str) -> str:
    for secret in SECRET_PATTERNS:
        if any(hint in text for hint in secret.hints):
            label = f"[redacted:{secret.kind}]"
            text = secret.pattern.sub(lambda match, label=label: _replace(match, label), text)  # type: ignore[misc]
    return text


def _replace(match: re.Match[str], label: str) -> str:
    groups = [name for name, part in match.groupdict().items() if part is not None]
    if not groups:
        return label
    start, end = match.span(groups[0])
    text, first = match.group(), match.start()
    return text[: start - first] + label + text[end - first :]
