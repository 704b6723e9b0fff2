"""The picker behind `hermes sessions browse`: find a conversation by typing, and look at it."""
