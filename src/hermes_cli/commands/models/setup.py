"""`hermes setup`: choose a provider and a model, and test them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import FailureKind
from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_agent.providers.apis import LOCAL_API, OPENAI_API, PRESETS, ModelChoice
from hermes_cli.commands.models import command, offer
from hermes_compat.original_home.home import offered_home
from hermes_core.command_name import command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_agent.providers.apis import ProviderPreset
    from hermes_cli.output import CommandOutput
    from hermes_core.config.file import Settings

EXAMPLES = """\
examples:
  hermes setup

Asks for the provider, the API key (hidden) and the model, tests the model with one short
question, and then saves the choice. Run it again to change it.
"""
NON_INTERACTIVE_HELP: Final = """\
Not running interactively. Use one of these instead:

  Anthropic      export ANTHROPIC_API_KEY=…    hermes
  OpenAI         export OPENAI_API_KEY=…       hermes
  another model  export OPENROUTER_API_KEY=…   hermes models use openrouter:NAME
  any endpoint   export HERMES_LLM_KEY=…       hermes models use URL#NAME
  built-in demo  hermes models get smollm2     hermes models use smollm2

`hermes config set keys.anthropic < FILE` saves an API key; `hermes models test` tests it.
"""
CANCELLED: Final = "Setup cancelled; nothing was changed."
MAX_SHOWN_MODELS: Final = 10
MAX_KEY_ATTEMPTS: Final = 3


class ProviderOption(NamedTuple):
    """An entry of the menu and the function that asks for its details."""

    title: str
    ask: Callable[[CommandOutput, Settings], ModelChoice]


def configure(parser: argparse.ArgumentParser) -> None:
    """Set the function; the command has no arguments."""
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Ask for the choice, test it, save it."""
    if not (sys.stdin.isatty() and out.is_terminal):
        out.hint(NON_INTERACTIVE_HELP.rstrip())
        home = offered_home()
        if home is not None:
            out.hint(offer.ORIGINAL_FOUND.format(path=home.path))
        return 2
    config = ConfigFile.of_home()
    try:
        if offer.offer_original(config.settings(), out):
            return 0
    except EOFError as error:
        raise UsageError(CANCELLED) from error
    if not choose(config, out):
        return 1
    out.text(f"Start with: {command_name()}")
    return 0


def choose(config: ConfigFile, out: CommandOutput) -> bool:
    """Ask for a model, test and save it; whether one was saved."""
    try:
        choice = _ask_for_choice(out, config.settings())
        if not _test_choice(choice, out):
            out.text("Nothing was changed.")
            return False
    except EOFError as error:
        raise UsageError(CANCELLED) from error
    for note in selection.save_choice(config, choice, choice.key):
        out.note(note)
    out.text(f"Done. Using {choice.model} at {choice.server}.")
    return True


def _ask_for_choice(out: CommandOutput, settings: Settings) -> ModelChoice:
    options = _provider_options()
    out.text("Choose a provider:")
    for number, option in enumerate(options, 1):
        out.text(f"  {number}. {option.title}")
    while True:
        answer = _ask(out, f"Number [1-{len(options)}]: ")
        if answer.isdecimal() and 0 < int(answer) <= len(options):
            return options[int(answer) - 1].ask(out, settings)


def _provider_options() -> list[ProviderOption]:
    """The menu: hosted providers, local servers, any endpoint, the built-in model."""
    options = [
        ProviderOption(f"{preset.title} (API key)", _hosted_provider(preset)) for preset in PRESETS
    ]
    for server in selection.local_servers():
        names = selection.list_served_models(server)
        if names:
            title = f"{server.name} (running locally)"
            options.append(ProviderOption(title, _local_server(server.base_url, names)))
    is_here = built_in.BuiltIn.of_home().is_installed
    fetched = "installed" if is_here else f"{built_in.DOWNLOAD_MB} MB download"
    return [
        *options,
        ProviderOption("Another OpenAI-compatible endpoint", _custom_endpoint),
        ProviderOption(f"Built-in demo model (no API key, {fetched})", _built_in),
    ]


# The provider options


def _hosted_provider(preset: ProviderPreset) -> Callable[[CommandOutput, Settings], ModelChoice]:
    def ask(out: CommandOutput, settings: Settings) -> ModelChoice:
        current_key = settings.get_secret(preset.key_setting) or ""
        return _with_key(ModelChoice(preset.api, "", preset.base_url), current_key, out)

    return ask


def _local_server(
    base_url: str, names: list[str]
) -> Callable[[CommandOutput, Settings], ModelChoice]:
    def ask(out: CommandOutput, _settings: Settings) -> ModelChoice:
        return ModelChoice(OPENAI_API, _ask_for_model(out, names), base_url)

    return ask


def _custom_endpoint(out: CommandOutput, _settings: Settings) -> ModelChoice:
    while True:
        base_url = _ask(out, "Base URL (e.g. http://127.0.0.1:8000/v1): ").rstrip("/")
        if base_url.startswith(("http://", "https://")):
            return _with_key(ModelChoice(OPENAI_API, "", base_url), "", out, is_optional=True)
        out.text("The URL must start with http:// or https://.")


def _built_in(out: CommandOutput, _settings: Settings) -> ModelChoice:
    command.install_built_in(out)
    return ModelChoice(LOCAL_API, built_in.MODEL_NAME)


def _with_key(
    choice: ModelChoice, current_key: str, out: CommandOutput, *, is_optional: bool = False
) -> ModelChoice:
    """*choice* with an accepted API key and a model."""
    from hermes_agent.providers.catalog import list_models  # noqa: PLC0415 - not for every provider

    for _ in range(MAX_KEY_ATTEMPTS):
        key = _ask_for_key(out, current_key, is_optional=is_optional)
        out.progress("Listing models…")
        offers = list_models(choice._replace(key=key))
        out.progress("")
        if offers.failure is None or offers.failure.kind is not FailureKind.KEY:
            break
        out.error(offers.failure.message)
        current_key = ""
    else:
        raise UsageError("No API key was accepted; nothing was changed.")
    if offers.failure is not None and offers.failure.kind is FailureKind.UNREACHABLE:
        raise UsageError(f"{offers.failure.message} Nothing was changed.")
    return choice._replace(key=key, model=_ask_for_model(out, offers.names))


def _ask_for_key(out: CommandOutput, current_key: str, *, is_optional: bool) -> str:
    import getpass  # noqa: PLC0415 - not for every provider

    hint = (
        "; press Enter to keep the current one"
        if current_key
        else "; press Enter for none" * is_optional
    )
    while True:
        out.flush()
        key = getpass.getpass(f"API key (hidden{hint}): ").strip() or current_key
        if key or is_optional:
            return key


def _ask_for_model(out: CommandOutput, names: list[str]) -> str:
    """Ask for one of *names* by number, or any model by name."""
    shown = names[:MAX_SHOWN_MODELS]
    for number, name in enumerate(shown, 1):
        out.text(f"  {number}. {name}")
    if len(names) > len(shown):
        out.text(f"  … and {len(names) - len(shown)} more (enter the name)")
    question = "Model number or name [1]: " if shown else "Model: "
    while True:
        answer = _ask(out, question)
        if not answer and shown:
            return shown[0]
        if answer.isdecimal() and 0 < int(answer) <= len(shown):
            return shown[int(answer) - 1]
        if answer and not answer.isdecimal():
            return answer


def _test_choice(choice: ModelChoice, out: CommandOutput) -> bool:
    """Test the model; if it fails, ask whether to save it anyway."""
    from hermes_agent.providers.catalog import run_trial  # noqa: PLC0415 - seldom

    out.progress(f"Waiting for {choice.model}…")
    trial = run_trial(choice.provider())
    out.progress("")
    if trial.failure is None:
        answer = command.start_of(trial.text)
        out.note(f"The model answered in {trial.seconds:.1f} s: {answer}")
        return True
    out.error(str(trial.failure))
    return _ask(out, "Save it anyway? [y/N] ").lower() in ("y", "yes")


def _ask(out: CommandOutput, question: str) -> str:
    out.flush()
    return input(question).strip()
