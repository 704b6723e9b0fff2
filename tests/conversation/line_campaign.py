"""A repository with 200 edits of three agents, and people's commits between: who wrote each line?

python -m conversation.line_campaign [SEED]

Everything is done with real tools: git, calls as each agent writes them, the index of the store.
The campaign notes who wrote each line, and compares.
"""

from __future__ import annotations

import difflib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

from hermes_conversation.line_origins import origins_of
from hermes_state import SessionDB

EDITS: Final = 200
MIN_SHARE: Final = 0.99
START: Final = 1_760_000_000.0
FILES: Final = ("app/main.py", "app/store.py", "web/page.ts", "docs/notes.md", "tools/run.sh")
SHORT: Final = ("", "    }", "else:", "    pass", "return", ")", "    try:")
COMMON: Final = ("import os", "    return None", "    raise ValueError", "if __name__ == 'main':")
AGENTS: Final = ("cli", "claude-code", "codex")
PERSON: Final = ""
PATCHED: Final = "Success. Updated the following files"
FAILED: Final = "<tool_use_error>String to replace not found in file.</tool_use_error>"


class Line(NamedTuple):
    """A line, and the conversation that wrote it; empty for a person or a program."""

    text: str
    author: str


def patch_of(path: str, before: list[Line], after: list[Line]) -> str:
    """A change in the format of Codex."""
    kind = "Update" if before else "Add"
    texts = [[line.text for line in part] for part in (before, after)]
    lines = [f"{line[0]}{line[2:]}" for line in difflib.ndiff(*texts) if line[0] in "+- "]
    body = "\n".join(lines)
    return f"*** Begin Patch\n*** {kind} File: {path}\n{body}\n*** End Patch"


def kept(old: list[Line], new: list[Line]) -> list[Line]:
    """New lines; one with the text of a replaced line is that line."""
    left = list(old)
    result = []
    for line in new:
        same = next((each for each in left if each.text.split() == line.text.split()), None)
        if same is not None:
            left.remove(same)
        result.append(line if same is None else line._replace(author=same.author))
    return result


class Outcome(NamedTuple):
    """Lines of agents that were named rightly, and lines of people that were claimed."""

    agent_lines: int
    right: int
    wrong: int
    person_lines: int
    claimed: int

    @property
    def share(self) -> float:
        """The share of the agents' lines that were named rightly."""
        return self.right / max(self.agent_lines, 1)


class Repository:
    """The working folder: its lines with their authors, and git."""

    def __init__(self, folder: Path, db: SessionDB, seed: int) -> None:
        self.folder, self.db, self.random = folder, db, random.Random(seed)
        self.now = START
        self.files: dict[str, list[Line]] = {}
        self.edits = 0
        self.count = 0
        self.deleted: list[str] = []
        self.sessions = [f"{agent}-{n}" for agent in AGENTS for n in range(4)]
        for session in self.sessions:
            agent = session.rpartition("-")[0]
            db.create_session(session, agent, cwd=str(folder), started_at=START)
            db.append_message(session, "user", f"prompt of {session}", timestamp=START)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str) -> None:
        when = f"{int(self.now)} +0000"
        environment = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True
        )

    # What is written

    def fresh(self, author: str, count: int) -> list[Line]:
        """New lines: mostly distinct, with short and common ones between them."""
        lines = []
        for _ in range(count):
            self.count += 1
            chance = self.random.random()
            if chance < 0.2:
                text = self.random.choice(SHORT)
            elif chance < 0.25:
                text = self.random.choice(COMMON)
            else:
                words = self.random.choices(("load", "store", "user", "cache", "page", "row"), k=3)
                text = f"{' ' * 4 * self.random.randrange(3)}{'_'.join(words)}_{self.count}()"
            lines.append(Line(text, author))
        return lines

    def write(self, path: str, lines: list[Line]) -> None:
        self.files[path] = lines
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line.text}\n" for line in lines))

    def text(self, path: str) -> str:
        return "".join(f"{line.text}\n" for line in self.files.get(path, []))

    def call(self, session: str, name: str, arguments: dict[str, Any], result: str) -> None:
        """A call of an agent and its result, in the history."""
        self.now += self.random.randrange(5, 120)
        call_id = f"call_{self.now}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        fields = {"tool_call_id": call_id, "tool_name": name, "timestamp": self.now}
        self.db.append_message(session, "assistant", "", tool_calls=[call], timestamp=self.now)
        self.db.append_message(session, "tool", result, **fields)

    # Edits of agents

    def agent_edit(self) -> None:
        """An edit of a random agent: a new file, a replacement, an insertion, a rewrite."""
        self.edits += 1
        session = self.random.choice(self.sessions)
        is_known = self.files and self.random.random() < 0.9
        path = self.random.choice(list(self.files) if is_known else FILES)
        lines = self.files.get(path)
        if not lines or len(lines) < 6:
            return self.rewrite(session, path, self.fresh(session, self.random.randrange(8, 30)))
        if self.random.random() < 0.15:
            return self.rewrite(session, path, self.changed(lines, session))
        return self.replace(session, path)

    def changed(self, lines: list[Line], author: str) -> list[Line]:
        at = self.random.randrange(len(lines))
        gone = lines[at : at + self.random.randrange(0, 3)]
        self.deleted += [line.text for line in gone]
        new = kept(gone, self.fresh(author, self.random.randrange(1, 6)))
        return [*lines[:at], *new, *lines[at + len(gone) :]]

    def rewrite(self, session: str, path: str, lines: list[Line]) -> None:
        """Write a whole file; the agent has read it before."""
        file = str(self.folder / path)
        agent, before = session.rpartition("-")[0], self.text(path)
        if before:
            numbered = "".join(f"{n}\t{line}\n" for n, line in enumerate(before.splitlines(), 1))
            name = "Read" if agent == "claude-code" else "read_file"
            key = "path" if agent == "cli" else "file_path"
            self.call(session, name, {key: file}, numbered)
        content = "".join(f"{line.text}\n" for line in lines)
        if agent == "codex":
            body = patch_of(path, self.files.get(path, []), lines)
            self.call(session, "apply_patch", {"input": body}, PATCHED)
        elif agent == "cli":
            written = {"path": path, "content": content}
            self.call(session, "write_file", written, '{"written": true, "error": null}')
        else:
            written = {"file_path": file, "content": content}
            self.call(session, "Write", written, f"File written: {file}")
        self.write(path, lines)

    def replace(self, session: str, path: str) -> None:
        """Replace some lines, with the lines beside them in the call."""
        lines = self.files[path]
        at = self.random.randrange(1, len(lines) - 2)
        size = self.random.randrange(0, min(4, len(lines) - at - 1))
        old, before = lines[at : at + size], lines[max(at - 2, 0) : at]
        after = lines[at + size : at + size + 2]
        new = kept(old, self.fresh(session, self.random.randrange(1, 7)))
        self.deleted += [line.text for line in old]
        result = [*lines[:at], *new, *lines[at + size :]]
        agent = session.rpartition("-")[0]
        old_text, new_text = (
            "".join(f"{line.text}\n" for line in [*before, *part, *after]) for part in (old, new)
        )
        file = str(self.folder / path)
        if agent == "codex":
            command = ["apply_patch", patch_of(path, lines, result)]
            self.call(session, "shell", {"command": command}, PATCHED)
        elif agent == "cli":
            change = {"path": path, "old_string": old_text, "new_string": new_text}
            self.call(session, "patch", change, '{"diff": "", "replaced": 1, "error": null}')
        else:
            change = {"file_path": file, "old_string": old_text, "new_string": new_text}
            self.call(session, "Edit", change, "The file has been updated.")
        if self.random.random() < 0.05:  # an edit that failed changed nothing
            change = {"file_path": file, "old_string": "x", "new_string": f"never_{self.now}_seen"}
            self.call(session, "Edit", change, FAILED)
        self.write(path, result)

    # What people and programs do

    def commit(self) -> None:
        self.now += 60
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"work at {int(self.now)}")

    def person(self) -> None:
        """A person changes a file, or a formatter does, and it is committed."""
        self.now += 300
        path = self.random.choice(list(self.files))
        lines, chance = self.files[path], self.random.random()
        if chance < 0.4:
            self.write(path, self.changed(lines, PERSON))
        elif chance < 0.6:  # writes again what was deleted
            at = self.random.randrange(len(lines) + 1)
            known = {line.text for line in lines}
            gone = [text for text in self.deleted[-40:] if len(text) > 12]
            again = [text for text in gone if text not in known][:2]
            self.write(path, [*lines[:at], *(Line(text, PERSON) for text in again), *lines[at:]])
        elif chance < 0.75:  # changes words of a line
            at = self.random.randrange(len(lines))
            changed = Line(f"{lines[at].text}  # checked {int(self.now)}", PERSON)
            self.write(path, [*lines[:at], changed, *lines[at + 1 :]])
        elif chance < 0.9:  # a formatter: white space only
            narrow = (line._replace(text=line.text.replace("    ", "  ")) for line in lines)
            self.write(path, list(narrow))
        else:  # a formatter: more than white space
            self.write(path, [
                Line(line.text.replace("()", "();"), PERSON) if line.text.endswith("()") else line
                for line in lines
            ])  # fmt: skip
        self.commit()

    def rename(self) -> None:
        path = self.random.choice(list(self.files))
        stem, dot, ending = path.rpartition(".")
        new = f"{stem}_{self.count}{dot}{ending}"
        self.commit()
        self.now += 60
        self.git("mv", path, new)
        self.files[new] = self.files.pop(path)
        self.commit()

    def rebase(self) -> None:
        """The last commits move onto another one; their authors' times stay."""
        self.commit()
        self.now += 600
        self.git("checkout", "-q", "-b", "other", "HEAD~6")
        (self.folder / f"other-{int(self.now)}.txt").write_text("another branch\n")
        self.commit()
        self.git("checkout", "-q", "main")
        self.now += 600
        self.git("rebase", "-q", "other")
        self.git("branch", "-q", "-D", "other")

    def work(self) -> None:
        """Edits of agents with what happens between them."""
        while self.edits < EDITS:
            for _ in range(self.random.randrange(1, 4)):
                self.agent_edit()
            if self.random.random() < 0.8:
                self.commit()
            if self.random.random() < 0.4:
                self.commit()
                self.person()
            if self.edits % 45 == 0:
                self.rename()
            if self.edits % 70 == 0:
                self.rebase()
        for _ in range(5):
            self.agent_edit()  # not committed


def run(folder: Path, db: SessionDB, seed: int) -> Outcome:
    """Make the repository, and ask for each line of it."""
    repository = Repository(folder, db, seed)
    repository.work()
    db.calls.fill()
    pairs: list[tuple[str, str]] = []  # the author of each line, and who was named
    for path, lines in repository.files.items():
        found = origins_of(db, folder / path).lines
        assert [origin.line.text for origin in found] == [line.text for line in lines]
        pairs += [
            (line.author, origin.edit.session_id if origin.edit else PERSON)
            for origin, line in zip(found, lines, strict=True)
            if line.text.strip()
        ]
    agents = [(author, named) for author, named in pairs if author != PERSON]
    people = [named for author, named in pairs if author == PERSON]
    return Outcome(
        len(agents),
        sum(author == named for author, named in agents),
        sum(named not in (author, PERSON) for author, named in agents),
        len(people),
        sum(named != PERSON for named in people),
    )


def main() -> int:
    """Print the outcome."""
    outcomes = []
    for seed in [int(word) for word in sys.argv[1:]] or range(1, 6):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "project"
            folder.mkdir()
            with SessionDB(Path(name) / "state.db") as db:
                outcomes.append(run(folder.resolve(), db, seed))
        sys.stdout.write(f"seed {seed}: {outcomes[-1]}\n")
    total = Outcome(*map(sum, zip(*outcomes, strict=True)))
    sys.stdout.write(f"all: {total}, {100 * total.share:.2f} % named rightly\n")
    return 0 if total.share >= MIN_SHARE and not total.claimed else 1


if __name__ == "__main__":
    sys.exit(main())
