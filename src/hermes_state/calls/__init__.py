"""Tool calls of the whole history, read once into derived rows: edits of files, outcomes."""
