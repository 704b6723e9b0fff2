"""Shifts the wall clock of a Python process, before anything else is imported.

`tests/run_at_other_times.py` puts this folder on PYTHONPATH, so that the test run and every
program it starts have the same time. Monotonic clocks and sleeping are not affected.
"""

import importlib.util
import os
import time

OFFSET = os.environ.get("HERMES_TEST_CLOCK_OFFSET_SECONDS")
if OFFSET and importlib.util.find_spec("time_machine"):  # not in Synapse's environment
    import time_machine

    traveller = time_machine.travel(time.time() + float(OFFSET), tick=True).start()
    # Starting takes time, which the shifted clock loses; processes must agree on the time.
    real = time_machine.escape_hatch.time.time()
    traveller.shift(real + float(OFFSET) - time.time())
