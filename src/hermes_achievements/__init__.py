"""Achievements: what a history is made of, and what it has earned.

    history    the protocol through which this room sees conversations
    facts      what one message adds, without a word of its text
    metrics    named functions from a session's facts to countable events
    tally      contributions of sessions, merged in any order
    values     the numbers achievements are measured by
    catalogue  the achievements, as data
    scanner    keeps the ledger up to date, with as many processes as there are free cores

Nothing here knows the session store: a store that wants to be read offers the protocol.
"""
