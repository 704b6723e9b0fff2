"""Commands run, are shown, limited, stopped, and never left behind."""

from __future__ import annotations

import os
import re
import stat
import threading

import pytest

from acceptance.campaign import wait_until
from support.waiting import act_when


def is_alive(pid):
    """Whether a process runs; one that is dead and not buried does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - of the kernel
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except FileNotFoundError:
        return False


def number_in(path):
    wait_until(lambda: path.exists() and path.read_text().strip() != "", f"{path}")
    return int(path.read_text())


def test_a_command_gives_its_output_and_exit_code(bench):
    result = bench("terminal", command="echo out; echo err >&2; exit 3")
    assert result == {"output": "out\nerr\n", "exit_code": 3, "error": None}


def test_output_is_shown_while_the_command_runs(bench):
    seen = []
    mark = bench.cwd / "seen"

    class Shown:
        def append(self, text):
            seen.append(text)
            mark.touch()

    bench.shown = Shown()
    bench("terminal", command=f"echo one; until [ -e {mark} ]; do sleep 0.02; done; echo two")
    assert "".join(seen) == "one\ntwo\n"


def test_a_front_end_that_fails_does_not_end_the_command(bench):
    class Broken:
        def append(self, _text):
            raise RuntimeError("no screen")

    bench.shown = Broken()
    assert bench("terminal", command="echo fine")["output"] == "fine\n"


def test_there_is_no_input_and_the_folder_is_the_given_one(bench):
    (bench.cwd / "sub").mkdir()
    result = bench("terminal", command="cat; pwd", cwd="sub")
    assert result["output"].strip().endswith("/work/sub")
    assert "does not exist" in bench("terminal", command="ls", cwd="none")["error"]


def test_long_output_keeps_its_head_and_tail(bench):
    result = bench("terminal", command="echo first; seq 1 100000; echo last")
    assert result["output"].startswith("first\n1\n2\n")
    assert result["output"].endswith("100000\nlast\n")
    assert "characters cut" in result["output"]
    assert len(result["output"]) < 30_100


def test_bytes_that_are_no_text_are_replaced(bench):
    result = bench("terminal", command="printf 'a\\377b\\303\\251'")
    assert result["output"] == "a\ufffdbé"


def test_a_signal_counts_as_128_and_its_number(bench):
    assert bench("terminal", command="kill -9 $$")["exit_code"] == 137


def test_a_timeout_ends_the_whole_group(bench):
    mark = bench.cwd / "pid"
    result = bench(
        "terminal", command=f"sleep 100 & echo $! > {mark}; echo started; wait", timeout=1
    )
    assert result["exit_code"] == 124
    assert result["output"] == "started\n"
    assert "1 s" in result["error"]
    assert not is_alive(number_in(mark))


def test_a_group_that_ignores_terminate_is_killed(bench):
    result = bench(
        "terminal", command="trap '' TERM; echo deaf; while :; do sleep 0.1; done", timeout=1
    )
    assert result["exit_code"] == 124
    assert bench("process", action="list")["jobs"] == []


def test_a_stop_ends_the_command_at_once_and_keeps_what_was_printed(bench):
    mark = bench.cwd / "pid"
    stopping = act_when(lambda: mark.exists() and mark.read_text(), bench.cancel.request)
    result = bench("terminal", command=f"echo before; echo $$ > {mark}; sleep 600; echo after")
    assert result["exit_code"] == 130
    assert result["output"] == "before\n"
    assert not is_alive(number_in(mark))
    stopping.join()


def test_nothing_starts_after_a_stop(bench):
    bench.cancel.request()
    assert bench("terminal", command=f"touch {bench.cwd}/x")["exit_code"] == 130
    assert not (bench.cwd / "x").exists()


def test_a_daemon_that_keeps_the_pipe_does_not_hold_us(bench):
    result = bench("terminal", command="(while :; do echo tick; sleep 0.05; done) & echo up")
    assert result["exit_code"] == 0
    assert "up\n" in result["output"]
    job = result["still_running"]
    ticks = lambda: bench("process", action="output", job=job)["output"].count("tick")  # noqa: E731
    wait_until(lambda: ticks() > 3, "ticks")
    assert bench("process", action="kill", job=job)["running"] is False


def test_a_daemon_of_its_own_session_does_not_hold_us(bench):
    mark = bench.cwd / "pid"
    result = bench("terminal", command=f"setsid sh -c 'echo $$ > {mark}; exec sleep 600' & echo up")
    assert "up" in result["output"]
    os.kill(number_in(mark), 9)


def test_a_command_that_closes_its_output_is_waited_for(bench):
    result = bench("terminal", command="exec >&- 2>&-; sleep 0.4; exit 7")
    assert result["exit_code"] == 7


def test_a_background_job_is_listed_waited_for_and_read(bench):
    result = bench("terminal", command="echo start; sleep 0.5; echo end; exit 4", background=True)
    job = result["job"]
    assert is_alive(result["pid"])
    assert bench("process", action="list")["jobs"][0]["running"] is True
    assert bench("process", action="wait", job=job, timeout=0)["exit_code"] is None
    ended = bench("process", action="wait", job=job, timeout=100)
    assert (ended["exit_code"], ended["running"], ended["output"]) == (4, False, "start\nend\n")


def test_a_background_job_is_killed_with_all_it_started(bench):
    mark = bench.cwd / "pid"
    job = bench("terminal", command=f"sleep 100 & echo $! > {mark}; wait", background=True)["job"]
    inner = number_in(mark)
    assert bench("process", action="kill", job=job)["running"] is False
    assert not is_alive(inner)


def test_a_wait_ends_when_a_stop_is_asked_for(bench):
    job = bench("terminal", command="sleep 100", background=True)["job"]
    bench.cancel.request()
    assert bench("process", action="wait", job=job, timeout=600)["running"] is True


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "`command` is missing"),
        ({"command": " "}, "empty"),
        ({"command": 5}, "must be a string"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "ls", "timeout": "soon"}, "must be a number"),
        ({"command": "x" * 300_000}, "too long"),
    ],
)
def test_bad_arguments_are_answered(bench, arguments, complaint):
    assert complaint in bench("terminal", **arguments)["error"]


def test_an_unknown_job_is_answered_with_those_there_are(bench):
    assert "running: none" in bench("process", action="output", job="job9")["error"]
    assert "must be one of" in bench("process", action="dance")["error"]


def test_many_commands_at_once(bench):
    results = []

    def run(number):
        results.append(bench("terminal", command=f"sleep 0.05; echo {number}")["output"])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(f"{number}\n" for number in range(20))


def test_a_long_output_can_be_read_in_pages(bench):
    command = "seq 1 200000; printf end"
    result = bench("terminal", command=command)
    name = re.search(r"/tmp/output-job\d+-\w+\.txt", result["output"])[0]
    page = bench("read_file", path=name, offset=100_000, limit=2)
    assert page["content"] == "100000|100000\n100001|100001"
    assert page["lines"] == 200_001
    assert bench("read_file", path=name, offset=200_001)["content"] == "200001|end"
    (file,) = bench.jobs.temporary.glob("output-*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bench.jobs.close()
    assert not file.exists()


def test_a_short_output_is_not_kept(bench):
    bench("terminal", command="seq 1 100")
    assert list(bench.jobs.temporary.glob("output-*")) == []
    assert "No such file" in bench("read_file", path="/tmp/output-job1-abc.txt")["error"]


def test_colours_and_progress_bars_are_left_out(bench):
    command = r"""printf '\033[1;32mok\033[0m\n\033]8;;http://x\007link\033]8;;\007\n'
    for n in 10 50 100; do printf '\r%s %%' $n; done; printf '\ndos\r\n'"""
    result = bench("terminal", command=command)
    assert result["output"] == "ok\nlink\n100 %\ndos\r\n"
