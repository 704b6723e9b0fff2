"""Where the files of messages are kept."""

from hermes_core.media import Kept, MediaStore

__all__ = ["Kept", "MediaStore"]
