"""State of the plugin."""

from itertools import count

numbers = count(1)


def increment():
    return next(numbers)
