"""Settings of the checkpoints of working folders."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

CHECKPOINT_SETTINGS: Final = (
    Setting(
        "checkpoints.enabled",
        "bool",
        True,
        "Keep a checkpoint of the working folder before the agent changes files, to take its "
        "changes back; needs git.",
    ),
    Setting(
        "checkpoints.max_files",
        "int",
        20_000,
        "Files of a folder beyond which no checkpoints of it are kept.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        "checkpoints.max_folder_mb",
        "int",
        500,
        "Size of a folder's files in MB beyond which no checkpoints of it are kept.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        "checkpoints.max_file_mb",
        "int",
        5,
        "Size in MB beyond which a file is not in a checkpoint.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "checkpoints.exclude",
        "list",
        (),
        "Files that are not in a checkpoint, as patterns of .gitignore, besides those of the "
        "folder's .gitignore and build folders.",
    ),
    Setting(
        "checkpoints.keep_days",
        "int",
        14,
        "Days that a checkpoint is kept.",
        minimum=1,
        maximum=36500,
    ),
    Setting(
        "checkpoints.max_mb",
        "int",
        2000,
        "Size of all checkpoints in MB, beyond which the oldest are deleted.",
        minimum=1,
        maximum=10_000_000,
    ),
    Setting(
        "checkpoints.min_free_mb",
        "int",
        1000,
        "Free space in MB on the disk of HERMES_HOME below which no checkpoints are taken.",
        minimum=0,
        maximum=10_000_000,
    ),
)
