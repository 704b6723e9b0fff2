"""Hosts that files are downloaded from."""

from __future__ import annotations

import pytest

from gateway.platforms import incoming_files

HOSTS = ("discordapp.com",)


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/a.png", True),
        ("http://cdn.discordapp.com/a.png", False),
        ("https://cdn.discordapp.com.evil.org/a.png", False),
        ("https://127.0.0.1/a.png", False),
        ("https://cdn.discordapp.com:99999/a.png", False),
        ("https://[/a.png", False),
    ],
)
def test_files_are_fetched_from_the_platform_only(url: str, is_own: bool) -> None:
    assert incoming_files.is_hosted_by(url, HOSTS, "") is is_own
