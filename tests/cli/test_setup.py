"""`hermes setup` on a terminal: a number, a key nobody sees, a model that was tried."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from cli.test_models import ended, listed, on_terminal
from hermes_agent.providers.script import Script
from hermes_agent.providers.script_server import ScriptServer
from support.built_in_model import built_in_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes

SECRET = "sk-nobody-sees-this"
