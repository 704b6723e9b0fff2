"""Images of a prompt as files, which the daemon reads."""

from __future__ import annotations

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_acp.prompt_content import PromptImage


@contextlib.contextmanager
def attached_files(images: list[PromptImage]) -> Iterator[list[str]]:
    """The paths of the images, in a private folder that is removed afterwards."""
    if not images:
        yield []
        return
    with TemporaryDirectory(prefix="hermes-acp-") as folder:
        paths: list[str] = []
        for number, image in enumerate(images, 1):
            path = Path(folder) / f"image-{number}.{image.suffix}"
            path.write_bytes(image.data)
            paths.append(str(path))
        yield paths
