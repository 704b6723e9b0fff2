"""Messages: append, read, edit, drafts."""
