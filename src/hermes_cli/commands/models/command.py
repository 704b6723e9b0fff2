"""`hermes models`: which models there are, which one answers, and whether it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_agent.providers.selection import key_name
from hermes_cli.output import Column
from hermes_cli.parser import add, add_json
from hermes_conversation import agent_factory
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import find_setting

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_agent.providers.selection import ModelChoice
    from hermes_cli.output import Output

WRITTEN: Final = ("llm.api", "llm.base_url", "llm.model")


def keep(config: ConfigFile, choice: ModelChoice, key: str = "") -> list[str]:
    """Let *choice* answer from now on; remarks for the user.

    A key and a window that were set for the model of another address go: the key must not
    be shown there, and the window is not true there.
    """
    settings = config.settings()
    before = (settings.get_str("llm.api"), settings.get_str("llm.base_url"))
    has_moved = before != (choice.api, choice.base_url)
    is_other = has_moved or settings.get_str("llm.model") != choice.model
    remarks = []
    if has_moved and config.unset("llm.key"):
        remarks.append("The key of the former model (llm.key) was removed.")
    if is_other and config.unset("llm.window"):
        remarks.append("llm.window was set for the former model and is the default again.")
    name = key_name(choice.api, choice.base_url)
    if name and key and key != settings.get_secret(name):
        config.set(name, key)
    for setting, value in zip(WRITTEN, (choice.api, choice.base_url, choice.model), strict=True):
        if value:
            config.set(setting, value)
        else:
            config.unset(setting)
    return [*remarks, *_overruled(config)]


def _overruled(config: ConfigFile) -> Iterator[str]:
    for name in WRITTEN:
        if config.entry(name).source == "environment":
            variable = find_setting(SETTINGS, name).variable
            yield f"The environment variable {variable} overrides what was written."


EXAMPLES = """\
examples:
  hermes models list                       what is chosen, and what is on this machine
  hermes models get smollm2                fetch the small built-in model
  hermes models use anthropic:NAME         let that one answer from now on
  hermes models test                       ask it one short question

A NAME is anthropic:NAME, openai:NAME, openrouter:NAME, URL#NAME, smollm2, or, for another
model where the present one comes from, just its name.
"""
COLUMNS = (
    Column("name", style="cyan", flexible=True, least=20),
    Column("where", flexible=True),
    Column("state", style="dim", flexible=True),
)
LONGEST = 160


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    purposes = {
        "list": ("what is chosen, and what is on this machine", "list --json", print_list),
        "get": ("fetch the small built-in model", "get smollm2", get),
        "use": ("let a model answer from now on", "use openrouter:NAME", use),
        "test": ("ask a model one short question", "test http://127.0.0.1:8080/v1#NAME", test),
    }
    children = {
        name: add(actions, name, purpose, examples=f"examples:\n  hermes models {words}\n", run=run)
        for name, (purpose, words, run) in purposes.items()
    }
    add_json(children["list"])
    children["get"].add_argument(
        "name", metavar="NAME", choices=[built_in.NAME], help=built_in.NAME
    )
    children["get"].add_argument(
        "--again", action="store_true", help="fetch it even if it is there"
    )
    children["use"].add_argument("name", metavar="NAME", help="such as anthropic:NAME")
    children["test"].add_argument(
        "name", metavar="NAME", nargs="?", default="", help="another one than the chosen one"
    )


# What there is


def print_list(arguments: argparse.Namespace, out: Output) -> int:
    """The chosen model, those of servers on this machine, and the built-in one."""
    choice = selection.chosen(ConfigFile.of_home().settings())
    servers = [(server, selection.served(server)) for server in selection.local_servers()]
    home = built_in.BuiltIn.of_home()
    if arguments.json:
        out.json(
            {
                "chosen": None if choice is None else as_dict(choice),
                "servers": [{**one._asdict(), "models": names} for one, names in servers if names],
                "built_in": {
                    "name": built_in.NAME,
                    "is_here": home.is_here,
                    "path": str(home.folder),
                },
            }
        )
        return 0
    rows = [] if choice is None else [(choice.model, where(choice), _state(choice))]
    rows += [
        (f"{server.base_url}#{name}", server.name, "runs on this machine")
        for server, names in servers
        for name in names
    ]
    state = "here" if home.is_here else f"`hermes models get {built_in.NAME}` fetches it"
    rows.append((built_in.NAME, "built in, a toy", state))
    out.table(COLUMNS, rows)
    if choice is None:
        found = selection.found_here()
        taken = f"{found.model} answers" if found else "nothing can answer; run `hermes setup`"
        out.note(f"No model is chosen: {taken}.")
    return 0


def as_dict(choice: ModelChoice) -> dict[str, Any]:
    """A choice for programs; of the key only whether there is one."""
    facts = choice._asdict()
    has_key = bool(facts.pop("key"))
    return {**facts, "has_key": has_key}


def where(choice: ModelChoice) -> str:
    """Where a model is, in a word."""
    if choice.api == "local":
        return "built in"
    default = "Anthropic" if choice.api == "anthropic" else choice.api
    return choice.base_url or default


def _state(choice: ModelChoice) -> str:
    if selection.key_name(choice.api, choice.base_url).startswith("keys.") and not choice.key:
        return "chosen; its key is missing, run `hermes setup`"
    return "chosen"


# Changing it


def get(arguments: argparse.Namespace, out: Output) -> int:
    """Fetch the built-in model."""
    fetch(out, is_anew=arguments.again)
    choice = selection.chosen(ConfigFile.of_home().settings())
    if choice is not None and choice.api != "local":
        out.text(f"{choice.model} goes on answering; `hermes models use smollm2` changes that.")
    else:
        out.text('Try it: hermes chat -q "hello"')
    return 0


def fetch(out: Output, *, is_anew: bool = False) -> None:
    """Have the built-in model here, with a line that says how it goes."""
    home = built_in.BuiltIn.of_home()
    if not out.is_watched and not home.is_current:
        out.note(f"fetching {built_in.TITLE} ({built_in.DOWNLOAD_MB} MB)")
    was_fetched = built_in.fetch(home, out.progress, is_anew=is_anew)
    state = "is here now" if was_fetched else "was here already"
    out.text(f"{built_in.TITLE} {state}: {home.folder}")
    out.text(built_in.TOY)


def use(arguments: argparse.Namespace, out: Output) -> int:
    """Write down which model answers from now on."""
    config = ConfigFile.of_home()
    settings = config.settings()
    current = selection.chosen(settings)
    if current is None and _is_plain(arguments.name):
        current = selection.found_here()
    choice = selection.named(settings, arguments.name, current)
    for remark in keep(config, choice):
        out.note(remark)
    out.text(f"{choice.model} ({where(choice)}) answers from now on.")
    kept = selection.chosen(ConfigFile.of_home().settings()) or choice
    if choice.api == "local" and not built_in.BuiltIn.of_home().is_here:
        out.note("It is not on this machine yet; fetch it with `hermes models get smollm2`.")
    elif _state(kept) != "chosen":
        out.note("There is no key for it yet; `hermes setup` asks for one.")
    return 0


def _is_plain(name: str) -> bool:
    return name != built_in.NAME and ":" not in name


def test(arguments: argparse.Namespace, out: Output) -> int:
    """Ask once; 1 when there is no answer."""
    from hermes_agent.providers.model_list import try_out  # noqa: PLC0415 - seldom

    choice = agent_factory.chain(ConfigFile.of_home().settings(), arguments.name)[0]
    out.progress(f"asking {choice.model} …")
    trial = try_out(choice.provider())
    out.progress("")
    if trial.failure is not None:
        out.error(str(trial.failure))
        return 1
    said = " ".join(trial.text.split())
    shown = said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
    out.text(f"{choice.model} ({where(choice)}) answered in {trial.seconds:.1f} s: {shown}")
    out.note(f"The first sign of life came after {trial.first_seconds:.2f} s.")
    return 0
