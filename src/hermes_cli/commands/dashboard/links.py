"""Links to the running dashboard, and opening them in a browser."""

from __future__ import annotations

import html
import os
import ssl
import sys
import time
from typing import TYPE_CHECKING, Final, TypedDict

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import HermesError
from hermes_core.instance_record import DASHBOARD, InstanceRecord
from hermes_core.paths import hermes_home
from hermes_core.system_programs import SYSTEM_PATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_cli.output import CommandOutput

RECORD_WAIT_SECONDS: Final = 10.0
REQUEST_TIMEOUT_SECONDS: Final = 10.0
REDIRECT_PAGE: Final = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Hermes</title>
<p><a href="{link}">Open the Hermes dashboard</a>
"""


class DashboardNotRespondingError(HermesError):
    """The running dashboard does not respond."""


def find_running(home: Path) -> InstanceRecord:
    """Wait for the record of the running dashboard."""
    deadline = time.monotonic() + RECORD_WAIT_SECONDS
    while (result := DASHBOARD.find(home)) is None:
        if time.monotonic() > deadline:
            raise DashboardNotRespondingError(
                "The dashboard is running, but has not published its URL. See the log."
            )
        time.sleep(0.05)
    return result


class LinkAnswer(TypedDict):
    """The answer of `POST /api/auth/links`."""

    url: str


def request_link(found: InstanceRecord) -> str:
    """Request a single-use link."""
    import httpx2 as httpx  # noqa: PLC0415 - only to ask

    try:
        with httpx.Client(
            verify=_tls_context(found), timeout=REQUEST_TIMEOUT_SECONDS, trust_env=False
        ) as client:
            headers = {"Authorization": f"Bearer {found.token}"}
            answer = client.post(f"{found.url}/api/auth/links", headers=headers)
            answer.raise_for_status()
            link: LinkAnswer = answer.json()
            return str(link["url"])
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise DashboardNotRespondingError(
            f"The dashboard at {found.url} (PID {found.pid}) is not responding: {error}"
        ) from error


def _tls_context(found: InstanceRecord) -> ssl.SSLContext | bool:
    """Trust only the certificate of the local dashboard, for any host name."""
    if not found.certificate:
        return True
    context = ssl.create_default_context(cafile=found.certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def print_link(found: InstanceRecord, link: str, out: CommandOutput, *, as_json: bool) -> None:
    """Print the link and flush."""
    if as_json:
        out.json_line({"link": link, "url": found.url, "pid": found.pid})
    else:
        out.text(link)
    out.flush()


def open_browser(link: str, out: CommandOutput) -> None:
    """Open the link in a browser if there is a display."""
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if sys.platform != "darwin" and not has_display:
        return
    import webbrowser  # noqa: PLC0415 - looks for browsers

    if not _opens(webbrowser.open, _redirect_page(link).as_uri()):
        out.note("Cannot open a browser; open the link manually.")


def _opens(open_page: Callable[[str], bool], page: str) -> bool:
    """Open a page with a browser of the system, or with the one that $BROWSER names."""
    path = os.environ.get("PATH", "")
    if not os.environ.get("BROWSER"):
        os.environ["PATH"] = SYSTEM_PATH  # the library looks for browsers there
    try:
        return open_page(page)
    finally:
        os.environ["PATH"] = path


def _redirect_page(link: str) -> Path:
    """A private page that redirects to the link.

    The link signs in, and every user of a machine can read the arguments of a process.
    """
    page = hermes_home() / "run" / "open-dashboard.html"
    content = REDIRECT_PAGE.format(link=html.escape(link))
    write_atomically(page, content)
    return page
