"""Settings of the checkpoints of working folders."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

CHECKPOINT_SETTINGS: Final = (
    Setting(
        "checkpoints.enabled",
        "bool",
        True,
        "Keep a checkpoint of the working folder before the agent changes files, so that its "
        "changes can be undone; needs git.",
    ),
    Setting(
        "checkpoints.max_files",
        "int",
        20_000,
        "Maximum number of files in a folder; larger folders get no checkpoints.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        "checkpoints.max_folder_mb",
        "int",
        500,
        "Maximum size of all files in a folder, in MB; larger folders get no checkpoints.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        "checkpoints.max_file_mb",
        "int",
        5,
        "Maximum size of a file in a checkpoint, in MB; larger files are left out.",
        minimum=1,
        maximum=1000,
    ),
    Setting(
        "checkpoints.exclude",
        "list",
        (),
        "Files to leave out of checkpoints, as .gitignore patterns, in addition to the folder's "
        ".gitignore and build folders.",
    ),
    Setting(
        "checkpoints.keep_days",
        "int",
        14,
        "Days to keep a checkpoint.",
        minimum=1,
        maximum=36500,
    ),
    Setting(
        "checkpoints.max_mb",
        "int",
        2000,
        "Maximum size of all checkpoints in MB; the oldest are deleted first.",
        minimum=1,
        maximum=10_000_000,
    ),
    Setting(
        "checkpoints.min_free_mb",
        "int",
        1000,
        "Minimum free disk space for HERMES_HOME in MB; with less, no checkpoints are taken.",
        minimum=0,
        maximum=10_000_000,
    ),
)
