"""Fixtures for every test: a separate home, the SQLite driver, the real command line."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import hermes_plugin_host
from hermes_agent.providers.apis import PRESETS
from hermes_compat.plugins.choice import choose_interface
from hermes_state.engine.sqlite import driver
from support import cpu_seconds, selection, signals
from support.command_line import Hermes, run_hermes
from support.mail_server import MailServer, running_mail_server
from support.postgres import IS_ON_POSTGRES, PostgresServer, running_postgres
from support.scheduling import GroupScheduling
from support.synapse import Synapse, running_synapse

if TYPE_CHECKING:
    from collections.abc import Iterator

driver.install()
signals.restore()

# Property tests look at the same examples every day, so that a red run means a change; the long
# campaigns look for new ones. Durations are meaningless while other tests run.
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("search" if os.environ.get("HERMES_CAMPAIGN") == "full" else "everyday")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT / ".." / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=("quick", "rest"), help="see tests/support/selection.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file in vain: a quick run needs few of the left-out ones."""
    if config.getoption("--part") != "quick" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix() + ("/" if collection_path.is_dir() else "")
    return None if selection.may_have_quick_tests(path) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the part that was asked for."""
    part = config.getoption("--part")
    if part is not None:
        left_out = [item for item in items if selection.is_quick(item.nodeid) != (part == "quick")]
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


def pytest_configure(config: pytest.Config) -> None:
    if measurement := cpu_seconds.plugin():
        config.pluginmanager.register(measurement)


@pytest.fixture(autouse=True)
def engine_of_history(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Put the history of the test's home into PostgreSQL where that is asked for."""
    if not IS_ON_POSTGRES:
        yield
        return
    with request.getfixturevalue("postgres").prepared_history() as url:
        monkeypatch.setenv("HERMES_STORE_URL", url)
        yield


@pytest.fixture(autouse=True)
def hermes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private HERMES_HOME and HOME, and no leftovers of the caller's surroundings."""
    hermes_plugin_host.active.cache_clear()  # the plugins of the home before
    choose_interface()
    home = tmp_path / "hermes-home"
    home.mkdir(mode=0o700)
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HOME", str(user))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "NO_COLOR", "COLUMNS", "HERMES_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for preset in PRESETS:
        for name in (preset.variable, *preset.other_variables):
            monkeypatch.delenv(name, raising=False)
        for ending in ("BASE_URL", "MODEL"):
            monkeypatch.delenv(f"{preset.name.upper()}_{ending}", raising=False)
    # A pseudo-terminal of a test answers no question about its cursor; the line editor would
    # wait two seconds for it, then leave the line for a warning and lose what is typed meanwhile.
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("HERMES_GATEWAY_HTTP_PORT", "0")  # tests run side by side
    monkeypatch.setenv("HERMES_AGENT_AUTOMATIC_TITLES", "false")  # scripts count the requests
    monkeypatch.setenv("HERMES_LLM_BUILT_IN", "never")  # no test downloads a model by accident
    return home


@pytest.fixture
def hermes() -> Hermes:
    """Run the real command line as a process of its own."""
    return run_hermes


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    """A real Matrix server, for the tests of the group `synapse`."""
    with running_synapse(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture(scope="session")
def mail_server() -> Iterator[MailServer]:
    """Real mail servers, for the tests of the group `mail`."""
    with running_mail_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, one per test process."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Histories written by the original, where they are available next to the project."""
    path = SHARED / "data"
    if not path.is_dir():
        pytest.skip("no ../shared/data: histories of the original are not here")
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without the garbage collector, a quarter of the time of collection.

    Modules and tests live as long as the process: no later collection looks at them.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse tests with the same id: pytest-xdist runs one of them."""
    counts = Counter(item.nodeid for item in session.items)
    doubled = [test_id for test_id, count in counts.items() if count > 1]
    if doubled:
        raise pytest.UsageError(f"Several tests have the id {doubled[0]}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Save the coverage of a worker while there is time: xdist kills one that ends slowly."""
    if "coverage" in sys.modules and (measured := sys.modules["coverage"].Coverage.current()):
        measured.save()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Run the tests of a group in one worker."""
    return GroupScheduling(config, log)
