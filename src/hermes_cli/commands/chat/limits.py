"""The options that limit what a turn may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.filters import parse_positive
from hermes_core.config.definitions.models import EFFORTS

if TYPE_CHECKING:
    import argparse


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for requests, reasoning and output of one run."""
    parser.add_argument(
        "--max-turns",
        type=parse_positive,
        default=0,
        metavar="N",
        help="stop after N requests to the model (setting agent.max_steps)",
    )
    parser.add_argument(
        "--effort",
        choices=EFFORTS,
        default="",
        help="how much the model reasons (setting llm.effort)",
    )
    parser.add_argument(
        "--max-output-tokens",
        type=parse_positive,
        default=0,
        metavar="N",
        help="longest answer in tokens (setting llm.max_output_tokens)",
    )
