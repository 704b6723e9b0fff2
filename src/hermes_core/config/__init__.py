"""Settings: the table of settings, and the files their values are read from and written to."""
