"""The built-in model: a very small one that needs no key, no server and no network."""
