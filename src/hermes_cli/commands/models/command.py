"""`hermes models`: choose, list, download and test models."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.providers.apis import ModelChoice
    from hermes_agent.providers.catalog import CatalogModel
    from hermes_cli.output import CommandOutput
    from hermes_core.config.file import Settings

EXAMPLES = """\
examples:
  hermes models                            choose the default model from all providers
  hermes models list --search sonnet       list models with context window and price
  hermes models get smollm2                download the small built-in model
  hermes models get minilm                 download the model for search by meaning
  hermes models use anthropic:NAME         set the default model
  hermes models test                       send one short question to it

NAME is PROVIDER:MODEL (anthropic, openai, openrouter, gemini, xai, mistral, deepseek, groq,
together, cerebras, moonshot, zai), URL#MODEL or smollm2; a plain MODEL selects another model of
the current provider. Lists are kept for a day.
"""
COLUMNS = (
    TableColumn("name", style="cyan", flexible=True, least=20),
    TableColumn("where", flexible=True),
    TableColumn("context", right=True),
    TableColumn("$ in / out", right=True, optional=True),
    TableColumn("state", style="dim", flexible=True),
)
SELECTED = "selected"
MINILM = "minilm"
FIRST_VECTORS_SECONDS = 60.0
CANCELLED_EXIT_CODE = 130
NO_PROVIDER = "No provider is configured. Run `hermes setup`, or set e.g. ANTHROPIC_API_KEY."
NO_MODEL_SELECTED = "No model selected. Run `hermes setup`."
MAX_SHOWN_CHARACTERS = 160


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    parser.set_defaults(run=pick)
    purposes: tuple[tuple[str, str, str, Callable[..., int]], ...] = (
        (
            "list",
            "list models with context window and price",
            "list --search gpt --json",
            print_list,
        ),
        (
            "get",
            "download a small model, for chat or for search",
            "get smollm2",
            download,
        ),
        ("use", "set the default model", "use openrouter:NAME", use),
        ("test", "send one short question to a model", "test http://127.0.0.1:8080/v1#NAME", test),
    )
    list_parser, get_parser, use_parser, test_parser = (
        add_command(actions, name, purpose, f"hermes models {words}", run=run)
        for name, purpose, words, run in purposes
    )
    add_json_option(list_parser)
    list_parser.add_argument(
        "--search", default="", metavar="WORDS", help="only models whose name contains all words"
    )
    list_parser.add_argument(
        "--refresh", action="store_true", help="fetch the lists of the providers again"
    )
    get_parser.add_argument(
        "name",
        metavar="NAME",
        choices=[built_in.MODEL_NAME, MINILM],
        help=f"{built_in.MODEL_NAME} (chat) or {MINILM} (search by meaning)",
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
    from hermes_agent.providers import catalog  # noqa: PLC0415 - needs HTTP, for lists only

    settings = ConfigFile.of_home().settings()
    choice = selection.configured_model(settings)
    servers = [
        (server, selection.list_served_models(server)) for server in selection.local_servers()
    ]
    home = built_in.BuiltIn.of_home()
    out.progress("Listing models…")
    lists = catalog.ModelCatalog().load(
        catalog.known_endpoints(settings), is_refreshed=arguments.refresh
    )
    out.progress("")
    found = catalog.search(catalog.all_models(lists), arguments.search)
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
                "models": [model._asdict() for model in found],
                "lists": [
                    {
                        "provider": each.endpoint.title,
                        "base_url": each.endpoint.url,
                        "fetched_at": each.fetched_at or None,
                        "problem": each.problem or None,
                    }
                    for each in lists
                ],
            }
        )
        return 0
    rows = _selected_rows(choice, found, arguments.search)
    rows += [_row(model, _model_state(model, servers)) for model in found]
    install = with_command_name(f"not installed; run `hermes models get {built_in.MODEL_NAME}`")
    state = "installed" if home.is_installed else install
    if arguments.search.lower() in built_in.MODEL_NAME:
        rows.append((built_in.MODEL_NAME, "built-in demo", "-", "-", state))
    out.table(COLUMNS, rows)
    for each in lists:
        if each.problem:
            out.note(each.problem)
    if choice is None:
        _print_used_model(settings, out)
    return 0


ModelRow = tuple[str, str, str, str, str]


def _selected_rows(
    choice: ModelChoice | None, found: list[CatalogModel], words: str
) -> list[ModelRow]:
    """The selected model, first; its figures are those of the list."""
    if choice is None or words.lower() not in choice.model.lower():
        return []
    listed = next((model for model in found if model.model == choice.model), None)
    window, price = _figures(listed) if listed else ("-", "-")
    return [(choice.model, choice.server, window, price, _state_text(choice))]


def _row(model: CatalogModel, state: str) -> ModelRow:
    return (model.name, model.provider, *_figures(model), state)


def _figures(model: CatalogModel) -> tuple[str, str]:
    """The context window, and the prices in dollars per million tokens."""
    window = f"{round(model.window / 1000):,}k" if model.window else "-"
    if model.input_price is None or model.output_price is None:
        return window, "-"
    return window, f"{model.input_price:g} / {model.output_price:g}"


def _model_state(
    model: CatalogModel, servers: list[tuple[selection.LocalServer, list[str]]]
) -> str:
    is_local = any(model.name.startswith(f"{server.base_url}#") for server, _ in servers)
    return "running locally" if is_local else ""


def _print_used_model(settings: Settings, out: CommandOutput) -> None:
    """Print which model is used although none is selected."""
    found = selection.environment_model(settings)
    if found is not None:
        out.note(agent_factory.environment_notice(settings, ConversationOptions()))
        return
    result = selection.find_local_model()
    out.note(f"No model selected; using {result.model}." if result else NO_MODEL_SELECTED)


# Choosing


def pick(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Choose the default model in a dialog; without a terminal, list the models."""
    can_move_cursor = os.environ.get("TERM", "") not in {"", "dumb"}
    if not (sys.stdin.isatty() and out.is_watched and can_move_cursor):
        arguments.json, arguments.search, arguments.refresh = False, "", False
        return print_list(arguments, out)
    # The TUI toolkit takes longer to load than most commands take to run.
    from hermes_agent.providers import catalog  # noqa: PLC0415 - as said
    from hermes_cli.commands.models.picker import ModelPickerApp  # noqa: PLC0415 - as said
    from hermes_tui.terminal_driver import TerminalDriver  # noqa: PLC0415 - as said
    from tui_gateway.protocol import ModelSummary  # noqa: PLC0415 - as said

    def load() -> list[ModelSummary]:
        endpoints = catalog.known_endpoints(ConfigFile.of_home().settings())
        models = catalog.all_models(catalog.ModelCatalog().load(endpoints))
        return [
            ModelSummary(
                model.name, model.provider, model.window, model.input_price, model.output_price
            )
            for model in models
        ]

    if not catalog.known_endpoints(ConfigFile.of_home().settings()):
        out.note(NO_PROVIDER)
        return print_list(argparse.Namespace(json=False, search="", refresh=False), out)
    name = ModelPickerApp(load, TerminalDriver).run()
    if name is None:
        return CANCELLED_EXIT_CODE
    return use(argparse.Namespace(name=name), out)


def as_dict(choice: ModelChoice) -> dict[str, Any]:
    """A choice as a dict, without its API key."""
    facts = choice._asdict()
    has_key = bool(facts.pop("key"))
    return {**facts, "api": choice.api.name, "has_key": has_key}


def _state_text(choice: ModelChoice) -> str:
    if selection.missing_key_setting(choice):
        return with_command_name("selected; API key missing, run `hermes setup`")
    return SELECTED


# Changing the model


def download(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Download the built-in model, or the one for search by meaning."""
    if arguments.name == MINILM:
        return _install_minilm(out)
    install_built_in(out, is_forced=arguments.again)
    choice = selection.configured_model(ConfigFile.of_home().settings())
    if choice is not None and not choice.is_built_in:
        out.hint(f"{choice.model} stays selected. Run `hermes models use smollm2` to change that.")
    else:
        out.hint('Try it with `hermes chat -q "hello"`.')
    return 0


def _install_minilm(out: CommandOutput) -> int:
    """Install the model for search by meaning, and compute the first vectors."""
    from hermes_cli import history  # noqa: PLC0415 - for this model only
    from hermes_state.search.embedders import LIBRARY  # noqa: PLC0415 - as above

    if not out.is_watched and not LIBRARY.is_fetched:
        out.note(f"Downloading all-MiniLM-L6-v2 ({LIBRARY.download_mb} MB)…")
    LIBRARY.fetch(out.progress)
    out.text(f"all-MiniLM-L6-v2 installed: {LIBRARY.folder}")
    if history.exists():
        with history.open_for_writing() as db:
            history.compute_vectors(db, out, seconds=FIRST_VECTORS_SECONDS)
    out.hint("Search by meaning: hermes search --meaning WORDS. Nothing leaves this machine.")
    return 0


def install_built_in(out: CommandOutput, *, is_forced: bool = False) -> None:
    """Install the built-in model, with progress."""
    home = built_in.BuiltIn.of_home()
    if not out.is_watched and not home.is_current:
        out.note(f"Downloading {built_in.TITLE} ({built_in.DOWNLOAD_MB} MB)…")
    was_fetched = built_in.fetch(home, out.progress, is_forced=is_forced)
    state = "installed" if was_fetched else "is already installed"
    out.text(f"{built_in.TITLE} {state}: {home.folder}")
    out.note(built_in.DEMO_NOTICE)


def use(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Save the default model."""
    config = ConfigFile.of_home()
    settings = config.settings()
    current = selection.selected_model(settings)
    if current is None and _is_plain(arguments.name):
        current = selection.find_local_model()
    choice = selection.model_by_name(settings, arguments.name, current)
    for note in selection.save_choice(config, choice):
        out.note(note)
    out.text(f"Default model: {choice.model} ({choice.server}).")
    result = selection.configured_model(ConfigFile.of_home().settings()) or choice
    if choice.is_built_in and not built_in.BuiltIn.of_home().is_installed:
        out.note("The model is not installed. Run `hermes models get smollm2` to download it.")
    elif _state_text(result) != SELECTED:
        out.note("The API key is missing. Run `hermes setup` to enter one.")
    return 0


def _is_plain(name: str) -> bool:
    return name != built_in.MODEL_NAME and ":" not in name


def start_of(answer: str) -> str:
    """The start of an answer, in one line."""
    text = " ".join(answer.split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"


def test(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Send one question; exit code 1 if it fails."""
    from hermes_agent.providers.catalog import run_trial  # noqa: PLC0415 - seldom

    choice = agent_factory.model_chain(ConfigFile.of_home().settings(), arguments.name)[0]
    out.progress(f"Waiting for {choice.model}…")
    trial = run_trial(choice.provider())
    out.progress("")
    if trial.failure is not None:
        out.error(str(trial.failure))
        return 1
    name = f"{choice.model} ({choice.server})"
    out.text(f"{name} answered in {trial.seconds:.1f} s: {start_of(trial.text)}")
    out.note(f"Time to first token: {trial.first_seconds:.2f} s")
    return 0
