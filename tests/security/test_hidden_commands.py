"""Commands inside text that bash evaluates: nothing runs that the analysis has not seen."""

from __future__ import annotations

import random

import pytest

from acceptance.campaign import IS_FULL
from security.bash_fuzz import Judge, Room, campaign
from security.conftest import CanaryHome, needs_bubblewrap, run_in_mode

SEEDS = (3, 14, 159)
SCRIPTS = 400
FRESH_CPU_SECONDS = 1_800.0
HIDDEN_FORMS = [
    "echo `echo hi` `{}`",
    "test -v 'a[$({})]'",
    "declare 'a[$({})]=1'",
    "x='$({})'; echo ${{x@P}}",
    "jobs -x {}",
    "[[ 'a[$({})]' -eq 0 ]]",
    "x='a[$({})]'; echo $((x))",
    "git -c alias.x='!{}' x",
    "sed -n '1e {}' README.md",
    "compgen -W '$({})' x",
    "BASH_ENV=<(echo '{}') bash -c :",
    "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='{}' README.md",
    "tar -I '{}' -cf x.tar README.md",
    "vim -es '+!{}' +q",
    "ed -s README.md <<< '!{}'",
    "git config alias.z '!{}'; git z",
    'let "x=a[\\`{}\\`]"',
    'x="a[\\`{}\\`]"; let x',
    "LESSOPEN='|{} %s' less README.md",
    "gdb -batch -ex 'shell {}'",
    "python3 -c'import os; os.system(\"{}\")'",
    "perl -e'system(\"{}\")'",
    "GIT_EXTERNAL_DIFF='{}' git diff --no-index README.md /etc/passwd",
]
# Scripts that the parser and bash once read in different ways.
KNOWN_SCRIPTS = [
    "eval $'b\\x{6f}om'",
    "eval -- bash -c $'\\x62oo\\x{6d\\x22'",
    'bash <<<x<<< "boom"',
    "bash <<< x < <(echo boom)",
    "cat <<'E'\nx\\\nE\nboom\nE\n",
    "evalX=\rexec..time boom",
    "E+=$\nb\\\noom",
    "true #\\\nbo\\\nom",
    'cat <(which =~ f2 f2 <<"E F"\nx\nE F\nboom\n)',
    "echo `echo hi` `boom`",
    ">x$' #-$'\\; boom",
    "bash <<'E'1\nboom\nE",
    "echo 'rm -rf \"$HOME\"' | bash | cat <<-E\n\tx\n\tE",
    "bash <<< 'a[`$'\\bo'$'\\''boom'\\''`]'",
    "[[~\n boom ]]",
    "[~\n boom ]",
    "[[ -n x~]]\nboom ]]",
    "compgen -C'boom'",
    "compgen -Cn -C 'a[`boom`]'",
    'rm -rf "$HOME"*',
    "sh -c $'\\#x78\\x5b\\x24\\x28\\x62\\x6f\\x6f\\x6d\\x29\\x5d\\x3d\\x31'",
    'jobs -x rm -rf "$H$HOME"*',
    "X=boom+='a[$(>x&\\`)]'\\; boom",
    "exec {x}>f boom",
    "ls >&'$(boom)'",
    "alas q=bo2>&1om'a[`bo\\\nom`]'",
    "time coproc boom |& cat",
    "cat <<-E\n\techo $(('$(boom -n)'))\n\tE",
    "git -c ${X}alias.x=!$'boom' x",
    "git -c ${X}alias.x=!boom x",
]


@pytest.mark.parametrize("form", HIDDEN_FORMS)
def test_full_mode_does_not_delete_the_home_by_a_hidden_command(
    canary: CanaryHome, form: str
) -> None:
    (canary.workspace / "README.md").write_text("one\n")
    before = canary.state()
    run_in_mode(canary, "full", form.format("rm -rf ~"))
    assert canary.state() == before


@pytest.mark.parametrize("script", KNOWN_SCRIPTS)
@needs_bubblewrap
def test_a_known_script_is_judged_as_bash_runs_it(
    script: str,
) -> None:
    room = Room()
    try:
        assert Judge().problem(script, room) == ""
    finally:
        room.close()


@pytest.mark.parametrize("seed", SEEDS)
@needs_bubblewrap
def test_random_scripts_are_judged_as_bash_runs_them(seed: int) -> None:
    count, wrong = campaign(seed, SCRIPTS)
    assert (count, wrong) == (SCRIPTS, [])


@pytest.mark.skipif(not IS_FULL, reason="runs for half an hour: make faults")
@needs_bubblewrap
def test_fresh_random_scripts_are_judged_as_bash_runs_them() -> None:
    seed = random.SystemRandom().randrange(2**32)
    count, wrong = campaign(seed, cpu_seconds=FRESH_CPU_SECONDS)
    assert wrong == [], f"seed {seed}, {count} scripts"
