"""What bash runs, the parser has seen: random scripts, run by a real bash that can do no harm.

The only program on its PATH is `boom`, which leaves a mark. When the mark is there, the
parser must have found `boom`, or have said that it does not know.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hermes_agent.permissions.command_review import CommandReviewer
from hermes_agent.permissions.path_zones import PathContext

BASH = shutil.which("bash")
LIMITS = "ulimit -t 1 -f 100\n"
WORDS = """
    boom bo om b oom X= X=boom $X ${X} "$X" Y true echo eval : if then fi while do done esac ;;
    [[ ]] (( )) $(( trap EXIT exec command time -c = += ~ * ${X:- ${X# x 1 , .. - local export
    declare read coproc function E <<< <( >x 2>&1 ; && || | & ! ( ) { } $( ` " ' $' \\ # $
"""
PIECES = [
    *WORDS.split(), " ", " ", " ", "\n", "\n", "\\\n", "{ ", "; }", " #", "<<E\n", "<<'E'\n",
    "<<-E\n",
    "\nE\n", "\n\tE\n", "< <(", " >x ", "for X in", "case x in x)", "f() ", "\t", "\r",
    "\v", "\f", "\xa0", "unset X",
]  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    room = tmp_path_factory.mktemp("room")
    programs = room / "bin"
    programs.mkdir()
    boom = programs / "boom"
    boom.write_text(f"#!{BASH}\n: > {room}/mark\n")
    boom.chmod(0o755)
    return room


def explodes(script, room):
    """Whether a real bash runs `boom`."""
    mark, cwd = room / "mark", room / "cwd"
    mark.unlink(missing_ok=True)
    shutil.rmtree(cwd, ignore_errors=True)
    cwd.mkdir()
    process = subprocess.Popen(
        [BASH, "-c", LIMITS + script],
        cwd=cwd,
        env={"PATH": str(room / "bin"), "HOME": str(cwd)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return mark.exists()


def is_seen(script, room):
    """Whether our own reading of the script knows of `boom`, or that it does not know."""
    context = PathContext(room, room / "hermes", (room,), (room,), 1)
    review = CommandReviewer(context)
    programs = [command.program for command in review.seen(script)]
    doubts = {"unparsable", "computed-command", "computed-script", "pipe-to-shell"}
    return "boom" in programs or bool(
        doubts & {finding.key for finding in review.review(script).findings}
    )


@st.composite
def scripts(draw):
    """Random pieces, most often with a command before or behind them that would run."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12))
    boom = draw(st.sampled_from(["boom", "bo\\\nom", "b''oom", "$X", ""]))
    joint = draw(st.sampled_from(["", " ", "\n", ";", "&&", "|"]))
    return draw(st.sampled_from([[boom, joint, *pieces], [*pieces, joint, boom]]))


@pytest.mark.skipif(BASH is None, reason="no bash here")
@settings(
    max_examples=int(os.environ.get("HERMES_FUZZ", "150")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(pieces=scripts())
@example(pieces=["cat", " ", "<<'E'\n", "x", "\\\n", "E", "\n", "boom", "\nE\n"])
@example(pieces=["evalX=", "\r", "exec..time", " ", "boom"])
@example(pieces=["E+=", "$", "\n", "b\\\noom"])
@example(pieces=["true", " #", "\\\n", "bo", "\\\n", "om"])
def test_what_bash_runs_has_been_seen(pieces, room):
    script = "".join(pieces)
    if explodes(script, room):
        assert is_seen(script, room), script
