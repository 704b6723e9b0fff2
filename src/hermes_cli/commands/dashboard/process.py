"""Builds the dashboard app, publishes its URL and serves it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_cli.commands.dashboard import links
from hermes_cli.commands.dashboard.demo_data import home as demo_home
from hermes_conversation.purge_hook import keep_facts
from hermes_core import __version__, paths
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, UsageError
from hermes_core.instance_record import DASHBOARD, InstanceRecord
from hermes_dashboard import page
from hermes_dashboard.app import Dashboard, create_app
from hermes_dashboard.auth.access import Access, TrustedProxies
from hermes_dashboard.auth.allowed_origins import WILDCARD_HOSTS, allowed_origins, is_loopback
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.context import DashboardContext
from hermes_dashboard.plugins import tabs
from hermes_dashboard.resources.gateway import GatewayAccess
from hermes_dashboard.resources.models import available_models
from hermes_dashboard.server import Certificate
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

REMOTE_ACCESS_REFUSED: Final = (
    "Listening on {host} requires a password. Set one with `hermes dashboard password`, "
    "then start the dashboard again."
)
NO_TLS_WARNING: Final = (
    "Warning: without TLS, the connection and the password can be read on the network. "
    "Set dashboard.tls_cert and dashboard.tls_key, or use a reverse proxy with TLS."
)
HOST_NAMES_HINT: Final = (
    "Other machines can only use the host names in the setting dashboard.hosts: "
    "`hermes config set dashboard.hosts NAME`"
)


class ListenPlan(NamedTuple):
    """The address, host names and certificate to serve with."""

    host: str
    port: int
    names: tuple[str, ...]
    certificate: Certificate | None
    proxies: TrustedProxies
    is_port_chosen: bool = True  # by the user; otherwise another free one may be used


def serve(arguments: argparse.Namespace, out: CommandOutput) -> int | None:
    """Serve until stopped; None if another process already serves."""
    from hermes_dashboard import server as serving  # noqa: PLC0415 - costs what only those pay who serve

    home = paths.hermes_home()
    plan = _plan(arguments)
    _warn(plan, out)
    with DASHBOARD.hold(home) as is_ours:
        if not is_ours:
            return None
        take = serving.open_socket if plan.is_port_chosen else serving.open_next_socket
        with take(plan.host, plan.port) as listening:
            if plan.port not in (0, listening.getsockname()[1]):
                out.note(
                    f"Port {plan.port} is in use; using {listening.getsockname()[1]}. "
                    "Choose another one with --port or the setting dashboard.port."
                )
            out.flush()
            page.ensure_built()  # if the build fails, the server serves an error page
            with SessionDB(purge_hook=keep_facts) as db:
                db.search.updater.start()
                port = listening.getsockname()[1]
                access = _access(plan, port, home)
                server = serving.create_server(_app(db, access, home), plan.certificate)
                _announce(access, plan, home, arguments, out)
                server.run(sockets=[listening])
    return 0


def _plan(arguments: argparse.Namespace) -> ListenPlan:
    config = ConfigFile.of_home()
    settings = config.settings()
    host = arguments.host or settings.get_str("dashboard.host")
    port = settings.get_int("dashboard.port") if arguments.port is None else arguments.port
    if not is_loopback(host) and not PasswordFile(paths.hermes_home()).is_set:
        raise UsageError(REMOTE_ACCESS_REFUSED.format(host=host))
    files = [settings.get_str(f"dashboard.tls_{name}") for name in ("cert", "key")]
    proxies = TrustedProxies(settings.get_list("dashboard.trusted_proxies"))
    names = settings.get_list("dashboard.hosts")
    is_chosen = arguments.port is not None or config.entry("dashboard.port").source != "default"
    return ListenPlan(host, port, names, _certificate(*files), proxies, is_chosen)


def _certificate(certificate: str, key: str) -> Certificate | None:
    if not certificate and not key:
        return None
    if not (certificate and key):
        raise ConfigError(
            "dashboard.tls_cert requires dashboard.tls_key, and vice versa; set both."
        )
    result = Certificate(Path(certificate).expanduser(), Path(key).expanduser())
    for item in result:
        if not item.is_file():
            raise ConfigError(f"dashboard.tls_cert, dashboard.tls_key: file {item} does not exist.")
    return result


def _warn(plan: ListenPlan, out: CommandOutput) -> None:
    if is_loopback(plan.host):
        return
    if plan.certificate is None:
        out.note(NO_TLS_WARNING)
    if plan.host in WILDCARD_HOSTS and not plan.names:
        out.note(HOST_NAMES_HINT)


def _access(plan: ListenPlan, port: int, home: Path) -> Access:
    is_secure = plan.certificate is not None
    origins = allowed_origins(plan.host, port, plan.names, is_secure=is_secure)
    return Access(home, origins, proxies=plan.proxies)


def _app(db: SessionDB, access: Access, home: Path) -> Dashboard:
    """Build the dashboard from its parts."""
    is_demo = demo_home.is_demo(home)
    parts = DashboardContext(db, home, GatewayAccess(db), available_models, is_demo)
    return create_app(parts, access, page.Page.locate(), tabs=tabs.TabFinder(home))


def _announce(
    access: Access, plan: ListenPlan, home: Path, arguments: argparse.Namespace, out: CommandOutput
) -> None:
    """Publish the URL in the instance record and print the link."""
    certificate = "" if plan.certificate is None else str(plan.certificate.path.resolve())
    token = secrets.token_urlsafe(32)
    instance_record = InstanceRecord(
        access.origins.url, token, os.getpid(), __version__, certificate
    )
    DASHBOARD.publish(instance_record, home)
    link = access.link()
    if access.origins.login == "link":
        out.note("Dashboard running. Press Ctrl+C to stop. Open it with this single-use link:")
    else:
        out.note("Dashboard running. Press Ctrl+C to stop. Sign in with the password at:")
    links.print_link(instance_record, link, out, as_json=arguments.json)
    if not arguments.no_open:
        links.open_browser(link, out)
