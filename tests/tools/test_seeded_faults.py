"""The table of faults that `make seeded-faults` puts into copies of the code."""

from __future__ import annotations

import pytest

from seeded_faults import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{n}-{f.file}" for n, f in enumerate(FAULTS, 1)])
def test_a_fault_changes_one_place_that_exists_and_names_tests_that_exist(fault: Fault) -> None:
    text = (ROOT / "src" / fault.file).read_text("utf-8")
    assert text.count(fault.code) == 1
    assert fault.fault != fault.code
    assert all((ROOT / "tests" / name).exists() for name in fault.tests.split())
