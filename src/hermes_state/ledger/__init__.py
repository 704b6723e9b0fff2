"""Statistics: the history as scanners read it, and the ledger of their results.

part        SessionDB methods, and the record of changed sessions
history     rows of the history, few columns
file        the ledger, a separate file that can be rebuilt
"""
