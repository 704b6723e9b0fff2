"""A module inside the package."""


def shouted(words):
    return words.upper()
