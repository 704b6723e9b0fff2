"""`hermes models`: list, download, select and test models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_agent.providers.default_model import save_choice
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import agent_factory
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_agent.providers.selection import ModelChoice
    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes models list                       list the selected and the local models
  hermes models get smollm2                download the small built-in model
  hermes models use anthropic:NAME         set the default model
  hermes models test                       send one short question to it

NAME is anthropic:MODEL, openai:MODEL, openrouter:MODEL, URL#MODEL or smollm2; a plain MODEL
selects another model of the current provider.
"""
COLUMNS = (
    TableColumn("name", style="cyan", flexible=True, least=20),
    TableColumn("where", flexible=True),
    TableColumn("state", style="dim", flexible=True),
)
SELECTED = "selected"
NO_MODEL_SELECTED = "No model selected. Run `hermes setup`."
MAX_SHOWN_CHARACTERS = 160


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    purposes: tuple[tuple[str, str, str, Callable[..., int]], ...] = (
        ("list", "list the selected and the local models", "list --json", print_list),
        ("get", "download the small built-in model", "get smollm2", download),
        ("use", "set the default model", "use openrouter:NAME", use),
        ("test", "send one short question to a model", "test http://127.0.0.1:8080/v1#NAME", test),
    )
    list_parser, get_parser, use_parser, test_parser = (
        add_command(
            actions, name, purpose, examples=f"examples:\n  hermes models {words}\n", run=run
        )
        for name, purpose, words, run in purposes
    )
    add_json_option(list_parser)
    get_parser.add_argument(
        "name", metavar="NAME", choices=[built_in.MODEL_NAME], help=built_in.MODEL_NAME
    )
    get_parser.add_argument(
        "--again", action="store_true", help="download even if it is already installed"
    )
    use_parser.add_argument("name", metavar="NAME", help="model, e.g. anthropic:NAME")
    test_parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default="",
        help="model to test (default: the current one)",
    )


# Listing


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the selected model, those of local servers, and the built-in one."""
    choice = selection.configured_model(ConfigFile.of_home().settings())
    servers = [
        (server, selection.list_served_models(server)) for server in selection.local_servers()
    ]
    home = built_in.BuiltIn.of_home()
    if arguments.json:
        out.json(
            {
                "chosen": None if choice is None else as_dict(choice),
                "servers": [
                    {**item._asdict(), "models": names} for item, names in servers if names
                ],
                "built_in": {
                    "name": built_in.MODEL_NAME,
                    "is_here": home.is_installed,
                    "path": str(home.folder),
                },
            }
        )
        return 0
    rows = [] if choice is None else [(choice.model, provider_text(choice), _state_text(choice))]
    rows += [
        (f"{server.base_url}#{name}", server.name, "running locally")
        for server, names in servers
        for name in names
    ]
    install = with_command_name(f"not installed; run `hermes models get {built_in.MODEL_NAME}`")
    state = "installed" if home.is_installed else install
    rows.append((built_in.MODEL_NAME, "built-in demo", state))
    out.table(COLUMNS, rows)
    if choice is None:
        result = selection.find_local_model()
        using = f"No model selected; using {result.model}." if result else NO_MODEL_SELECTED
        out.note(using)
    return 0


def as_dict(choice: ModelChoice) -> dict[str, Any]:
    """A choice as a dict, without its API key."""
    facts = choice._asdict()
    has_key = bool(facts.pop("key"))
    return {**facts, "has_key": has_key}


def provider_text(choice: ModelChoice) -> str:
    """The provider or base URL of a model."""
    if choice.api == "local":
        return "built-in"
    default = "Anthropic" if choice.api == "anthropic" else choice.api
    return choice.base_url or default


def _state_text(choice: ModelChoice) -> str:
    if selection.key_name(choice.api, choice.base_url).startswith("keys.") and not choice.key:
        return with_command_name("selected; API key missing, run `hermes setup`")
    return SELECTED


# Changing the model


def download(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Download the built-in model."""
    install_built_in(out, is_forced=arguments.again)
    choice = selection.configured_model(ConfigFile.of_home().settings())
    if choice is not None and choice.api != "local":
        out.hint(f"{choice.model} stays selected. Run `hermes models use smollm2` to change that.")
    else:
        out.hint('Try it with `hermes chat -q "hello"`.')
    return 0


def install_built_in(out: CommandOutput, *, is_forced: bool = False) -> None:
    """Install the built-in model, with progress."""
    home = built_in.BuiltIn.of_home()
    if not out.is_watched and not home.is_current:
        out.note(f"Downloading {built_in.TITLE} ({built_in.DOWNLOAD_MB} MB)…")
    was_fetched = built_in.fetch(home, out.progress, is_forced=is_forced)
    state = "installed" if was_fetched else "is already installed"
    out.text(f"{built_in.TITLE} {state}: {home.folder}")
    out.text(built_in.DEMO_NOTICE)


def use(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Save the default model."""
    config = ConfigFile.of_home()
    settings = config.settings()
    current = selection.configured_model(settings)
    if current is None and _is_plain(arguments.name):
        current = selection.find_local_model()
    choice = selection.model_by_name(settings, arguments.name, current)
    for note in save_choice(config, choice):
        out.note(note)
    out.text(f"Default model: {choice.model} ({provider_text(choice)}).")
    result = selection.configured_model(ConfigFile.of_home().settings()) or choice
    if choice.api == "local" and not built_in.BuiltIn.of_home().is_installed:
        out.note("The model is not installed. Run `hermes models get smollm2` to download it.")
    elif _state_text(result) != SELECTED:
        out.note("The API key is missing. Run `hermes setup` to enter one.")
    return 0


def _is_plain(name: str) -> bool:
    return name != built_in.MODEL_NAME and ":" not in name


def test(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Send one question; exit code 1 if it fails."""
    from hermes_agent.providers.model_list import run_trial  # noqa: PLC0415 - seldom

    choice = agent_factory.model_chain(ConfigFile.of_home().settings(), arguments.name)[0]
    out.progress(f"Waiting for {choice.model}…")
    trial = run_trial(choice.provider())
    out.progress("")
    if trial.failure is not None:
        out.error(str(trial.failure))
        return 1
    answer = " ".join(trial.text.split())
    shown = answer if len(answer) <= MAX_SHOWN_CHARACTERS else f"{answer[:MAX_SHOWN_CHARACTERS]}…"
    out.text(f"{choice.model} ({provider_text(choice)}) answered in {trial.seconds:.1f} s: {shown}")
    out.note(f"Time to first token: {trial.first_seconds:.2f} s")
    return 0
