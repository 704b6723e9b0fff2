"""Random scripts: what the analysis says of each, against what a real bash does with it.

python bash_fuzz.py SEED [COUNT|SECONDSs]

Prints a line for each script that was judged wrong. Every script runs inside bubblewrap, where
the whole system is read-only and the home is in memory: a miss harms nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOM = Path("/tmp/hermes-fuzz")  # inside the sandbox; outside, it does not exist
HOME = ROOM / "home"
WORK = HOME / "project"
FILES = {"project/a": "1 two\n", "project/b c": "x\n", "project/-n": "", "keep/diary": "dear\n"}
DOUBTS = frozenset({"unparsable", "computed-command", "computed-script", "pipe-to-shell"})
RUN_SECONDS = 2
BOOM_SCRIPT = f"#!/bin/bash\n: > {ROOM}/mark\n"
PREFIX = "ulimit -t 1 -f 200 -v 1000000; "

PAYLOADS = [
    "boom", "boom", "boom", "bo\\\nom", "b''oom", '"boom"', "$X", "$'boom'", "boom -n",
    "rm -rf ~", 'rm -rf "$HOME"', "rm -r ~ x", "rm -rf ~/", "touch mark", "> f", "tee f", "cp a f",
]  # fmt: skip
SIMPLE = [
    "ls", "cat a", "echo hi", "true", ":", "false", "cat -", "wc -l a", "sort a", "head -n 1 a",
    "grep x a", "find . -name a", "sed -n 1p a", "uniq a", "printf '%s' x", "pwd", "cd .", "x=1",
    "X=boom", "Y=", "unset X", "read x", "set -x", "export X", "local y", "declare -i n", "date",
    "test -n x", "[ -f a ]", "[[ -n x ]]", "(( 1 ))", "let i=1", "shift", "wait", "jobs", "type ls",
    "which ls", "cat 'b c'", "diff a a", "tr a b", "cut -c1 a", "stat a", "tail -n 2 a",
]  # fmt: skip
FORMS_FILE = Path(__file__).with_name("fuzz_forms.txt")


def contexts() -> list[str]:
    """The forms, with their marks resolved."""
    lines = FORMS_FILE.read_text().splitlines()
    forms = [line for line in lines if not line.startswith(("# Forms", "# double"))]
    return [form.replace("⏎", "\n").replace("⇥", "\t").replace("%%", "\1") for form in forms]


PIECE_WORDS = """
    boom bo om $X ${X} "$X" X= X=boom Y ; && || | & ! ( ) { } $( ` " ' $' \\ # $ (( )) $(( [[ ]]
    then fi do done esac ;; <<< <( >x 2>&1 ~ * = += [ ] - -v -eq @P ${ ${! x 1 eval test
"""
PIECES = [
    *PIECE_WORDS.split(),
    " ", " ", " ", "\n", "\n", "\\\n", "{ ", "; }", " #", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n",
    "\n\tE\n", "< <(", "\t", "\r", "\v", "\xa0", "a[$(", ")]", "'a[$(", ")]'", "\\`", "\\$(",
]  # fmt: skip


class Generator:
    """Scripts from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._contexts = contexts()

    def script(self) -> str:
        """One script."""
        kind = self._random.random()
        text = self._noise() if kind < 0.2 else self._filled(self._random.randint(1, 3))
        return self._mutated(text) if self._random.random() < 0.35 else text

    def _noise(self) -> str:
        pieces = self._random.choices(PIECES, k=self._random.randint(1, 12))
        pieces.insert(
            self._random.choice([0, len(pieces)]), self._random.choice(["boom", "; boom"])
        )
        return "".join(pieces)

    def _filled(self, depth: int) -> str:
        if depth == 0:
            return self._random.choice(PAYLOADS if self._random.random() < 0.6 else SIMPLE)
        form = self._random.choice(self._contexts)
        result = []
        for character in form:
            if character == "@":
                result.append(self._filled(depth - 1 if self._random.random() < 0.7 else 0))
            elif character == "%":
                result.append(self._quoted(self._code(depth)))
            elif character == "#" and not form.startswith(("# ", "ls #", "echo ${#")):
                text = self._filled(0).replace("\\", "\\\\").replace('"', '\\"')
                result.append(f'"{text}"')
            else:
                result.append(character)
        return "".join(result).replace("\1", "%")

    def _code(self, depth: int) -> str:
        text = self._filled(self._random.randint(0, max(0, depth - 2)))
        return self._random.choice(
            [text, f"a[$({text})]", f"$({text})", f"a[`{text}`]", f"x[$({text})]=1"]
        )

    def _quoted(self, text: str) -> str:
        single = "'" + text.replace("'", "'\\''") + "'"
        double = '"' + "".join(f"\\{each}" if each in '"$`\\' else each for each in text) + '"'
        ansi = "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + "'"
        return self._random.choice([single, single, double, ansi])

    def _mutated(self, text: str) -> str:
        for _ in range(self._random.randint(1, 3)):
            place = self._random.randint(0, len(text))
            end = min(len(text), place + self._random.randint(0, 4))
            choice = self._random.random()
            if choice < 0.5:
                text = text[:place] + self._random.choice(PIECES) + text[place:]
            elif choice < 0.8:
                text = text[:place] + text[end:]
            else:
                text = text[:place] + text[place:end] * 2 + text[end:]
        return text


class Effect(NamedTuple):
    """What a script did."""

    ran: bool  # whether `boom` ran
    changed: bool  # whether a file of the home is another one than before
    emptied: bool  # whether all files of the home are gone
    cpu_seconds: float  # of this and all scripts before


def serve() -> None:
    """Inside the sandbox: run each script that comes as a line, and answer with its effect."""
    programs = ROOM / "bin"
    programs.mkdir(parents=True)
    (programs / "boom").write_text(BOOM_SCRIPT)
    (programs / "boom").chmod(0o755)
    before = _fresh()
    for line in sys.stdin:
        _run(json.loads(line))
        after = _state()
        ran = (ROOM / "mark").exists()
        kept = [name for name in FILES if name in after and not name.endswith("-n")]
        cpu = sum(os.times()[:4])
        sys.stdout.write(json.dumps([ran, after != before, not kept, cpu]) + "\n")
        sys.stdout.flush()
        if ran or after != before:
            before = _fresh()


def _fresh() -> dict[str, str]:
    (ROOM / "mark").unlink(missing_ok=True)
    shutil.rmtree(HOME, ignore_errors=True)
    for name, text in FILES.items():
        (HOME / name).parent.mkdir(parents=True, exist_ok=True)
        (HOME / name).write_text(text)
    return _state()


def _state() -> dict[str, str]:
    found = {}
    for base, folders, names in os.walk(HOME):
        for name in (*folders, *names):
            path = Path(base, name)
            is_file = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(HOME))] = path.read_text(errors="replace") if is_file else ""
    return found


def _run(script: str) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(exist_ok=True)
    process = subprocess.Popen(
        ["/bin/bash", "-c", PREFIX + script],
        cwd=WORK,
        env={"PATH": f"{ROOM}/bin:/usr/bin:/bin", "HOME": str(HOME)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=RUN_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Room:
    """A sandbox in which scripts run one after the other."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        mounts += ["--ro-bind", str(Path(__file__).resolve()), "/tmp/fuzz.py"]
        limits = ["--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--chdir", "/"]
        python = os.path.realpath(sys.executable)  # an environment may be below /tmp
        self._process = subprocess.Popen(
            ["bwrap", *limits, *mounts, "--", python, "-I", "-S", "/tmp/fuzz.py", "serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, script: str) -> Effect:
        """What a real bash does with a script."""
        _pipe(self._process.stdin).write(json.dumps(script).encode() + b"\n")
        _pipe(self._process.stdin).flush()
        effect = Effect(*json.loads(_pipe(self._process.stdout).readline()))
        self.cpu_seconds = effect.cpu_seconds
        return effect

    def close(self) -> None:
        """End the sandbox with everything in it."""
        self._process.communicate()  # without input, it ends by itself


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


class Judge:
    """What the analysis says of a script."""

    def __init__(self) -> None:
        from hermes_agent.permissions.command_review import CommandReviewer  # noqa: PLC0415 - not inside the sandbox
        from hermes_agent.permissions.path_zones import PathContext  # noqa: PLC0415 - as above

        os.environ["PATH"] = "/usr/bin:/bin"
        context = PathContext(HOME, HOME / ".hermes", (WORK,), (WORK,), 1)
        self._reviewer = CommandReviewer(context)

    def problem(self, script: str, room: Room) -> str:
        """How the judgement was wrong; empty if it was not."""
        review: Any = self._reviewer.review(script)
        has_doubt = any(finding.level >= 3 for finding in review.findings)
        if has_doubt and not review.only_reads:
            return ""
        effect = room.run(script)
        if review.only_reads and (effect.ran or effect.changed):
            return "was said to read only"
        if has_doubt or any(finding.key == "inline-code" for finding in review.findings):
            return ""  # what code of another language does is not analyzed
        if effect.ran and not any(map(_names_boom, self._reviewer.seen(script))):
            return "ran a program unseen"
        return "emptied the home unasked" if effect.emptied else ""


def _names_boom(command: Any) -> bool:
    """Whether a command is `boom`, or a shell that is given it as a script file."""
    is_script = command.program in {"bash", "sh", "source", "."} and any(
        word.endswith("boom") for word in command.words
    )
    return command.program == "boom" or is_script


def campaign(seed: int, count: int = 0, cpu_seconds: float = 0) -> tuple[int, list[str]]:
    """Judge and run scripts of a seed; how many, and those that were judged wrong."""
    generator, room, judge = Generator(seed), Room(), Judge()
    found: list[str] = []
    done = 0
    try:
        while (count and done < count) or (
            cpu_seconds and time.process_time() + room.cpu_seconds < cpu_seconds
        ):
            script = generator.script()
            done += 1
            if "\0" in script or not judge.problem(script, room):
                continue
            fresh = Room()  # what an earlier script left running is not in it
            try:
                problem = judge.problem(script, fresh)
            finally:
                fresh.close()
            if problem:
                found.append(f"{problem}: {script!r}")
    finally:
        room.close()
    return done, found


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        amount = sys.argv[2] if len(sys.argv) > 2 else "2000"
        is_time = amount.endswith("s")
        result = campaign(
            int(sys.argv[1]), 0 if is_time else int(amount), float(amount[:-1]) if is_time else 0
        )
        sys.stdout.write("\n".join([f"{result[0]} scripts", *result[1]]) + "\n")
