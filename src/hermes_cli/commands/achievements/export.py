"""`hermes achievements export`: achievements as a file to share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.achievements import report
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

STDOUT: Final = "-"
IMAGE_FORMAT: Final = "png"
FORMATS: Final = ("json", "markdown", "svg", IMAGE_FORMAT)
SUFFIXES: Final = {
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".svg": "svg",
    ".png": IMAGE_FORMAT,
}


def export(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the file, or print it."""
    from hermes_achievements.export import render  # noqa: PLC0415 - draws pictures
    from hermes_cli import output_files  # noqa: PLC0415 - as above

    form = _format(arguments)
    if arguments.file == STDOUT and arguments.json:
        raise UsageError("--json requires FILE: it describes the written file.")
    if arguments.file == STDOUT and form == IMAGE_FORMAT:
        raise UsageError("An image requires FILE, e.g. achievements.png.")
    with report.open_report(out) as look:
        result = render(look.snapshot, look.catalogue, form)
    if arguments.file == STDOUT:
        out.raw(result.content)
        return 0
    path = Path(arguments.file)
    if output_files.is_folder(arguments.file):
        path = output_files.unused_path(path, result.name)
    output_files.make_folder(path.parent)
    size = output_files.write(path, [result.content], is_replacing=arguments.force)
    if arguments.json:
        out.json({"file": str(path), "format": form, "bytes": size})
    else:
        out.text(f"{path}  {human_format.size(size)}")
    return 0


def _format(arguments: argparse.Namespace) -> str:
    """The requested format, or the one of the file suffix."""
    if arguments.format:
        return str(arguments.format)
    if arguments.file == STDOUT:
        return "markdown"
    suffix = Path(arguments.file).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"Unknown format of '{arguments.file}'. Pass --format {', '.join(FORMATS)}, "
            f"or use the suffix {', '.join(SUFFIXES)}."
        )
    return SUFFIXES[suffix]
