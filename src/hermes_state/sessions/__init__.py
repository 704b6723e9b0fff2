"""Sessions: rows, lists, titles, tags, lineage, trash, retention."""
