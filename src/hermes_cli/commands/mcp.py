"""`hermes mcp`: the MCP servers of the agent, and an MCP server for other agents."""

from __future__ import annotations

import json
import re
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.config import PROJECT_SECTION, VARIABLE
from hermes_agent.mcp.connection import SDK
from hermes_agent.project.files import MCP_FILE, repository_root
from hermes_cli import history
from hermes_cli.filters import parse_positive
from hermes_cli.output import TableColumn
from hermes_cli.parser import CommandParser, add_command, add_json_option
from hermes_conversation.mcp import server_list
from hermes_conversation.mcp.server_list import (
    add_server,
    check_server,
    find_server,
    list_servers,
    remove_server,
)
from hermes_core.atomic_files import write_atomically
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.json_values import object_in, parse_object

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput
    from hermes_core.json_values import JsonObject, JsonValue


EXAMPLES: Final = """\
examples:
  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  hermes mcp add tracker --url https://tracker.example/mcp --header 'Authorization: Bearer ${TOKEN}'
  hermes mcp list                list the servers and their state
  hermes mcp test files          connect to one and list its tools
  hermes mcp serve               let other agents list, search and read conversations
  hermes mcp serve --allow-send  also let them send messages to chats
  hermes mcp serve --http 127.0.0.1:8650
                                 serve over HTTP to clients with a key of `hermes api-keys`

Configure `hermes mcp serve` as a stdio server in the other agent.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes mcp`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    examples = "examples:\n  hermes mcp serve\n  hermes mcp serve --allow-send\n"
    serve_parser = add_command(
        actions, "serve", "serve conversations to other agents", examples, run=serve
    )
    serve_parser.add_argument(
        "--allow-send", action="store_true", help="also allow sending messages to chats"
    )
    serve_parser.add_argument(
        "--allow-approve",
        action="store_true",
        help="also allow answering questions of running turns, such as approvals",
    )
    serve_parser.add_argument(
        "--http", metavar="HOST:PORT", help="serve over HTTP; callers need a key"
    )
    configure_servers(actions)


def serve(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Serve on stdio until it is closed, or over HTTP until the process is stopped."""
    if not SDK.is_usable():
        raise UsageError("The MCP library is not installed. Run `hermes mcp add`.")
    from gateway.mcp_server import server  # noqa: PLC0415 - the library is slow to load
    from gateway.process.config_loader import Secrets  # noqa: PLC0415 - as above

    address = _address(arguments.http) if arguments.http is not None else None
    options = server.McpOptions(arguments.allow_send, arguments.allow_approve)
    with history.open_for_writing() if any(options) else history.open_for_reading() as db:
        if address is None:
            server.build_server(db, options).run("stdio")
            return 0
        key = Secrets()("API_SERVER_KEY")
        try:
            server.serve_http(db, options, address, key, _announce(out))
        except (OSError, OverflowError) as error:
            raise UsageError(f"Cannot listen on {arguments.http}: {error}") from error
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise UsageError(f"invalid address {text!r}: use HOST:PORT, e.g. 127.0.0.1:8650")
    return host.strip("[]"), int(port)


def _announce(out: CommandOutput) -> Callable[[str], object]:
    return lambda url: out.text(f"Serving MCP at {url}. Press Ctrl+C to stop.")


ADD_EXAMPLES: Final = """\
examples:
  hermes mcp add                 install the MCP library only
  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  hermes mcp add db --env 'DB_URL=${DB_URL}' -- python3 db_server.py
  hermes mcp add tracker --url https://tracker.example/mcp --header 'Authorization: Bearer ${TOKEN}'
  hermes mcp add db --project -- python3 db_server.py   write .mcp.json of this project
"""
COLUMNS: Final = (
    TableColumn("name", style="cyan"),
    TableColumn("state"),
    TableColumn("from", optional=True),
    TableColumn("server", flexible=True),
)
SECRET_NAME: Final = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
TEST_SECONDS: Final = 30
PROJECT_FILE_MODE: Final = 0o644  # a file of the repository, not a private one


def configure_servers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions."""
    adding = add_command(
        actions, "add", "add an MCP server, or install the library", ADD_EXAMPLES, run=add
    )
    if isinstance(adding, CommandParser):
        adding.rest_name = "command_words"
    adding.usage = "%(prog)s [NAME] [options] [-- COMMAND [ARG ...]]"
    adding.add_argument("name", nargs="?", metavar="NAME", help="name of the server")
    adding.add_argument(
        "-e", "--env", action="append", default=[], metavar="NAME=VALUE",
        help="variable of the program; may be repeated",
    )  # fmt: skip
    adding.add_argument("--url", default="", metavar="URL", help="server over HTTP")
    adding.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'",
        help="HTTP header; may be repeated",
    )  # fmt: skip
    _add_project_option(adding)
    add_command(
        actions, "list", "list MCP servers and their state", "hermes mcp list",
        "hermes mcp list --json", run=print_list, has_json=True,
    )  # fmt: skip
    getting = add_command(actions, "get", "show an MCP server", "hermes mcp get files", run=get)
    getting.add_argument("name", metavar="NAME", help="name of the server")
    add_json_option(getting)
    removing = add_command(
        actions, "remove", "remove an MCP server", "hermes mcp remove files", run=remove
    )
    removing.add_argument("name", metavar="NAME", help="name of the server")
    _add_project_option(removing)
    testing = add_command(
        actions, "test", "connect to an MCP server and list its tools", "hermes mcp test files",
        run=test,
    )  # fmt: skip
    testing.add_argument("name", metavar="NAME", help="name of the server")
    testing.add_argument(
        "--timeout", type=parse_positive, default=TEST_SECONDS, metavar="SECONDS",
        help=f"time limit (default: {TEST_SECONDS})",
    )  # fmt: skip
    add_json_option(testing)


def _add_project_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", action="store_true", help="in .mcp.json of this project, not in config.yaml"
    )


def add(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Add a server; without a name, install the library only."""
    if arguments.name is None:
        if arguments.command_words or arguments.url:
            raise UsageError("No server name given. Usage: hermes mcp add NAME -- COMMAND")
        _install(out, is_reported=True)
        return 0
    fields = _fields(arguments)
    if arguments.project:
        check_server(arguments.name, fields)
        file = ProjectMcpFile.of_folder(Path.cwd())
        file.add(arguments.name, fields)
        where = str(file.path)
    else:
        config = ConfigFile.of_home()
        add_server(config, arguments.name, fields)
        where = str(config.path)
    out.text(f"Added {arguments.name} to {where}.")
    for name in _plain_secrets(arguments):
        out.note(
            f"The value of {name} is stored as plain text in {where}. Better: put it into .env in "
            f"the Hermes folder and write ${{{name}}} here."
        )
    _install(out, is_reported=False)
    if arguments.project:
        out.hint("To use it in conversations here, run `hermes trust`.")
    else:
        out.hint(f"New conversations use it. To try it, run `hermes mcp test {arguments.name}`.")
    return 0


def _install(out: CommandOutput, *, is_reported: bool) -> None:
    if SDK.is_usable():
        if is_reported:
            out.text("The MCP library is already installed.")
        return
    SDK.fetch(out.progress)
    out.text("The MCP library was installed.")


def _fields(arguments: argparse.Namespace) -> JsonObject:
    words: list[str] = arguments.command_words
    if bool(words) == bool(arguments.url):
        raise UsageError("Give either a command after `--`, or --url URL.")
    if arguments.url:
        headers = _pairs(arguments.header, ":", "--header 'NAME: VALUE'")
        return {"url": arguments.url, **({"headers": headers} if headers else {})}
    env = _pairs(arguments.env, "=", "--env NAME=VALUE")
    rest: list[JsonValue] = [*words[1:]]
    return {
        "command": words[0],
        **({"args": rest} if rest else {}),
        **({"env": env} if env else {}),
    }


def _pairs(texts: list[str], separator: str, usage: str) -> JsonObject:
    pairs: JsonObject = {}
    for text in texts:
        name, found, value = text.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"Invalid {text!r}. Usage: {usage}")
        pairs[name.strip()] = value.strip() if separator == ":" else value
    return pairs


def _plain_secrets(arguments: argparse.Namespace) -> list[str]:
    """Names whose values look like secrets and are not `${NAME}`."""
    pairs = {**_pairs(arguments.env, "=", ""), **_pairs(arguments.header, ":", "")}
    return [
        name
        for name, value in pairs.items()
        if SECRET_NAME.search(name) and not VARIABLE.search(str(value))
    ]


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the servers of config.yaml and of this project."""
    found = list_servers(Path.cwd())
    if arguments.json:
        out.json([server.as_json() for server in found])
    elif found:
        out.table(COLUMNS, [(item.name, item.state, item.origin, item.target) for item in found])
    else:
        out.hint("No MCP servers. Add one with `hermes mcp add NAME -- COMMAND`.", "dim")
    return 0


def get(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print one server; values that may be secrets are hidden."""
    server = find_server(arguments.name, Path.cwd())
    if arguments.json:
        out.json(server.as_json())
        return 0
    rows = [("name", server.name), ("state", server.state), ("from", str(server.path))]
    for key, value in server.shown_fields().items():
        if isinstance(value, dict):
            rows += [(f"{key}.{name}", str(item)) for name, item in value.items()]
        else:
            text = shlex.join(map(str, value)) if isinstance(value, list) else str(value)
            rows.append((key, text))
    out.pairs(rows)
    return 0


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Remove a server from config.yaml, or from .mcp.json."""
    if arguments.project:
        file = ProjectMcpFile.of_folder(Path.cwd())
        file.remove(arguments.name)
        out.text(f"Removed {arguments.name} from {file.path}.")
        return 0
    config = ConfigFile.of_home()
    remove_server(config, arguments.name)
    out.text(f"Removed {arguments.name} from {config.path}.")
    return 0


def test(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Connect to a server as a conversation would, and print its tools."""
    server = find_server(arguments.name, Path.cwd())
    result = server_list.connect(server, Path.cwd(), float(arguments.timeout))
    if arguments.json:
        out.json(
            {"name": server.name, "ok": not result.problem, "error": result.problem or None,
             "tools": [tool._asdict() for tool in result.tools]}
        )  # fmt: skip
    elif result.problem:
        out.error(result.problem)
    else:
        out.text(f"Connected to {server.name}: {len(result.tools)} tools")
        for tool in result.tools:
            out.text(f"  {tool.name.partition('/')[2]}  {tool.description}")
    return 1 if result.problem else 0


class ProjectMcpFile:
    """`.mcp.json` of a project, as `--project` writes it; other keys in it are kept."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_folder(cls, cwd: Path) -> ProjectMcpFile:
        """The file at the root of the repository that *cwd* is in."""
        return cls(repository_root(cwd) / MCP_FILE)

    def add(self, name: str, fields: JsonObject) -> None:
        """Add a server."""
        document = self._read()
        servers = object_in(document, PROJECT_SECTION)
        if name in servers:
            raise UsageError(f"{name} already exists in {self.path}.")
        self._write({**document, PROJECT_SECTION: {**servers, name: fields}})

    def remove(self, name: str) -> None:
        """Remove a server."""
        document = self._read()
        servers = object_in(document, PROJECT_SECTION)
        if name not in servers:
            raise UsageError(f"No server {name!r} in {self.path}. See `hermes mcp list`.")
        rest = {key: fields for key, fields in servers.items() if key != name}
        self._write({**document, PROJECT_SECTION: rest})

    def _read(self) -> JsonObject:
        if not self.path.exists():
            return {}
        document = parse_object(self.path.read_text("utf-8-sig"))
        if document is None:
            raise UsageError(f"{self.path} is not a JSON object; fix it by hand.")
        return document

    def _write(self, document: JsonObject) -> None:
        if self.path.is_symlink():
            raise UsageError(f"{self.path} is a link; edit the file it points to.")
        mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else PROJECT_FILE_MODE
        write_atomically(self.path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        self.path.chmod(mode)
