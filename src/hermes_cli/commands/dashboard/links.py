"""Links to a dashboard that runs, and the browser they are opened in."""

from __future__ import annotations

import os
import ssl
import sys
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import HermesError
from hermes_core.instance_record import DASHBOARD, InstanceRecord

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_cli.output import Output

WAIT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 10.0


class NoAnswerError(HermesError):
    """The dashboard that runs does not answer."""


def running(home: Path) -> InstanceRecord:
    """The dashboard that runs, which may be about to say where."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (found := DASHBOARD.find(home)) is None:
        if time.monotonic() > deadline:
            raise NoAnswerError(
                "The dashboard is running, but has not published its URL. See the log."
            )
        time.sleep(0.05)
    return found


def fresh(found: InstanceRecord) -> str:
    """Ask it for a link that works once."""
    import httpx2 as httpx  # noqa: PLC0415 - only to ask

    try:
        with httpx.Client(verify=_trust(found), timeout=ANSWER_SECONDS, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {found.token}"}
            answer = client.post(f"{found.url}/api/auth/links", headers=headers)
            answer.raise_for_status()
            return str(answer.json()["url"])
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise NoAnswerError(
            f"The dashboard at {found.url} (PID {found.pid}) is not responding: {error}"
        ) from error


def _trust(found: InstanceRecord) -> ssl.SSLContext | bool:
    """Its own certificate and no other, whatever name is in it: it is asked on this machine."""
    if not found.certificate:
        return True
    context = ssl.create_default_context(cafile=found.certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def show(found: InstanceRecord, link: str, out: Output, *, as_json: bool) -> None:
    """Print the link, at once."""
    if as_json:
        out.json_line({"link": link, "url": found.url, "pid": found.pid})
    else:
        out.text(link)
    out.flush()


def open_browser(link: str, out: Output) -> None:
    """Open the link where somebody can see it."""
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if sys.platform != "darwin" and not has_display:
        return
    import webbrowser  # noqa: PLC0415 - looks for browsers

    if not webbrowser.open(link):
        out.note("Cannot open a browser; open the link manually.")
