"""Matrix, as an ordinary account of any homeserver."""
