"""Statistics: the history as scanners read it, and the ledger of their results.

repository  SessionDB methods, and the record of changed sessions
history     rows of the history, few columns
factory     opens the ledger of a history
file        the ledger of a history in a file: a separate file that can be rebuilt
shared      the ledger of a history in a database: tables that can be rebuilt
"""
