"""The power fails: what was acknowledged is on the disk, whatever the disk did last.

A run of the store on a watched file system is recorded, and cut at random moments. The
same harness finds the losses of weaker settings, which proves that it would see ours.
"""

from __future__ import annotations

import pytest

from acceptance.campaign import Worker, size

TURNS = 120
FULL = 2


@pytest.fixture
def cut_power(tmp_path):
    """Record a run with a `synchronous` setting and cut it; return the run and the totals."""

    def record_and_cut(synchronous: str, images: int):
        folder = tmp_path / synchronous.replace(" ", "-")
        image = folder / "image"
        image.mkdir(parents=True)
        log = folder / "log"
        with Worker("record.py", folder, folder / "state.db", synchronous, log, TURNS) as worker:
            assert worker.wait(120) == 0, worker.error_output()
            run = worker.reports("recorded")[0]
        # Two processes, which run in parallel and fail independently.
        checkers = [
            Worker("power_cuts.py", folder, log, image_folder(image, number), images // 2, number)
            for number in (1, 2)
        ]
        for worker in checkers:
            assert worker.wait(3000) == 0, worker.error_output()
        outcomes = [worker.reports("checked")[0] for worker in checkers]
        names = ("images", "corrupt", "images_losing", "lost", "refused_by_the_store")
        total = {name: sum(outcome[name] for outcome in outcomes) for name in names}
        return run, total, [text for outcome in outcomes for text in outcome["examples"]]

    return record_and_cut


def image_folder(folder, number):
    subfolder = folder / str(number)
    subfolder.mkdir()
    return subfolder


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_power_cut_loses_nothing_acknowledged(cut_power, figures):
    run, result, examples = cut_power("as the store", size(250, 5000))
    figures("power cuts, as the store is", acknowledged=run["acknowledged"], **result)
    assert run["settings"] == ["wal", FULL]
    assert run["acknowledged"] == TURNS * 2
    assert result["corrupt"] == 0, examples
    assert result["lost"] == 0
    assert result["refused_by_the_store"] == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_harness_sees_what_weaker_settings_lose(cut_power, figures):
    images = size(100, 1000)
    _run, normal, _examples = cut_power("NORMAL", images)
    figures("power cuts, control with NORMAL", **normal)
    assert normal["images_losing"] > images // 10
    assert normal["corrupt"] == 0
    _run, off, _examples = cut_power("OFF", images)
    figures("power cuts, control with OFF", **off)
    assert off["corrupt"] > images // 10
