"""Statistics: the history as scanners read it, and the side file of what they made of it.

changes     which sessions were changed otherwise than by new messages
reading     the history's rows, as few columns as possible
file        the ledger itself, a file of its own that can always be made again
"""
