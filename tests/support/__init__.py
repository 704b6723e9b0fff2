"""Things that several tests build on."""
