"""Achievements: statistics of a history, and the tiers that they unlock.

    catalogue       achievement definitions, as data
    classification  operations of tools, outcomes, programs of shell commands, model names
    metrics         facts of messages, metrics of sessions, and their tally
    scan            keeps the ledger up to date, in as many processes as there are free cores
    evaluation      values, unlock dates, records and views
    recap           summaries of a year, a month or a week
    pictures        SVG and PNG images
    service         snapshots of the achievements and background scans

The package does not depend on the session store; the store implements `scan.history`.
"""
