"""Hold the database's write lock for a while, as another program might.

hold_lock.py REPORT DATABASE SECONDS
"""

from __future__ import annotations

import sys
import time

from reporting import Report

from hermes_state.engine.sqlite.driver import sqlite3

report = Report()
database, seconds = sys.argv[2:4]
connection = sqlite3.connect(database, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
report.write("locked")
time.sleep(float(seconds))
connection.execute("ROLLBACK")
connection.close()
report.write("released")
