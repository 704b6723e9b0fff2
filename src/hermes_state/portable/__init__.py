"""History on the move: exports, imports, pages for people, backups."""
