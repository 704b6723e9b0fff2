"""Text in several scripts: long streams of words made once, of which messages are cuts."""

from __future__ import annotations

import itertools
import json
from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

T = TypeVar("T")

STREAM_WORDS: Final = 40_000
RARE_WORDS: Final = 4_000

ENGLISH: Final = """the to of and a in is it that for you on with this be are can not have we
please file error test run make change function build server message fix check why does when
database session index query write read lock thread process restart deploy release branch merge
review customer invoice payment meeting tomorrow report summary translate draft email photo recipe
travel hotel train budget garden weather music book explain example compare cheaper faster"""
GERMAN: Final = """der die das und ist nicht ich wir bitte Datei Fehler warum kannst du mir einen
Termin Rechnung übersetzen zusammenfassen Straße größer prüfen Änderung läuft wieder Montag für
über Sitzung Datenbank Rückgabe Vertrag Kündigung Zug Wohnung Garten Rezept schöne Grüße"""
ARABIC: Final = """مرحبا من فضلك كيف يمكنني إصلاح هذا الخطأ في الملف شكرا لك أريد تلخيص التقرير
اليوم غدا الاجتماع قاعدة البيانات الرسالة ترجمة النص العربية"""
CHINESE: Final = (
    "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着"
    "去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主"
    "行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二"
    "理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走"
    "电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市"
    "眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提"
    "感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它"
    "许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青"
)
JAPANESE: Final = """ファイル エラー を 修正 して ください データベース の 接続
が 切れました テスト は 成功 しました 会議 明日 ありがとう 説明 写真
お願いします 旅行 京都 予約 サーバー 再起動 です ます"""
KOREAN: Final = """파일을 수정해 주세요 오류가 발생했습니다 데이터베이스 연결 감사합니다 내일 회의
보고서 요약 번역해 서버를 재시작 왜 느린가요 여행 예약 사진 좋은 아침입니다"""
EMOJI: Final = "🙂 👍 🎉 🚀 ❤️ 😂 🤔 ✅ 🔥 👩‍💻 🇩🇪 ☕ 🐛 lol ok thx cool nice hmm wow"
VERBS: Final = "get set load store parse merge check list open close retry count find apply drop"
NOUNS: Final = "session message row index user token path config lock queue event page batch reply"
NAMES: Final = [f"{verb}_{noun}" for verb in VERBS.split() for noun in NOUNS.split()]
SYLLABLES: Final = "ba ke li mo ra tu ven dor sil pak ner qui zon hal fen gri lus mar tok wex"

MULTIMODAL_PICTURE: Final = {"type": "image_url", "image_url": {"url": "file:///tmp/shot.png"}}
TRACE: Final = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/work/app/main.py", line {n}, in <module>\n    main()\n'
    '  File "/home/me/work/app/store.py", line {n}, in {name}\n    row = rows[{n}]\n'
    "IndexError: list index out of range"
)
# How commands fail: how often, the exit code, and what they print.
FAILURES: Final = (
    (14, 1, TRACE),
    (8, 1, "loading {name} ...\n" + TRACE),
    (16, 1, "fatal: not a git repository (or any of the parent directories): .git"),
    (16, 1, "Error: connect ECONNREFUSED 127.0.0.1:{n}"),
    (14, 1, "src/{name}.py:{n}:5: F821 undefined name `{name}`\nFound 1 error."),
    (10, 2, "make: *** No rule to make target '{name}'.  Stop."),
    (10, 2, "ls: cannot access '{name}': No such file or directory"),
    (8, 127, "bash: {name}: command not found"),
    (3, 124, "Command timed out after 60 seconds"),
    (1, 137, "Killed"),
)
FAILED_TEST: Final = "FAILED tests/test_{name}.py::test_{name} - AssertionError: assert {n} == 0"
ERRORS: Final = (
    "File not found: src/{name}.py",
    "Could not find a match for old_string in {name}.py",
    "HTTP 404: https://example.org/{name}",
    "Permission denied: /etc/{name}",
    "Rate limit exceeded, retry in {n} s",
)

# What shells are asked to run, and how often; {name} and {n} vary.
COMMANDS: Final = (
    (40, "git status"),
    (14, "git diff --stat HEAD~{n}"),
    (10, "git log --oneline -n {n}"),
    (22, 'git add -A && git commit -m "{name}: fix && tidy; see #{n}"'),
    (4, "git commit -am 'wip | {name}'"),
    (12, "git push origin main"),
    (4, "git checkout -b {name} && git push -u origin {name}"),
    (3, "git stash && git pull --rebase && git stash pop"),
    (2, "git merge {name}"),
    (1, "git tag v1.{n}.0 && git push --tags"),
    (1, "git reset --hard HEAD~1"),
    (30, "pytest -q tests/test_{name}.py"),
    (8, "cd /srv/app && .venv/bin/python -m pytest -x -k '{name} and not slow' 2>&1 | tail -{n}"),
    (10, "npm test"),
    (6, "npm run build"),
    (4, "npm install --save-dev {name}"),
    (4, "cargo test --all && cargo clippy"),
    (4, "go test ./..."),
    (12, "cd /srv/app && make build"),
    (3, "make -j4 test"),
    (8, "docker compose up -d"),
    (5, "docker ps --format '{{{{.Names}}}}' | grep {name}"),
    (3, "docker build -t {name}:{n} . && docker push {name}:{n}"),
    (8, "pip install requests"),
    (5, "python3 -m pip install -U {name}"),
    (8, "uv run ruff check ."),
    (4, "uv run mypy src && uv run ruff format ."),
    (3, "npx prettier --write 'src/**/*.ts'"),
    (12, "curl -s http://localhost:8080/health"),
    (4, "curl -s 'http://localhost:{n}/api/{name}?a=1&b=2' | jq '.items[] | .id'"),
    (24, "ls -la src"),
    (14, "cat src/{name}.py | head -{n}"),
    (12, "grep -rn '{name}' src | wc -l"),
    (6, "find . -name '*.py' -not -path './.venv/*' | xargs wc -l"),
    (6, 'echo "rm -rf / # never; git push" && pwd'),
    (6, "cat > src/{name}.py <<'EOF'\nimport os\n# git commit && npm test\nprint('{name}')\nEOF"),
    (3, "python3 - <<EOF\nprint({n})\nEOF\ngit status"),
    (4, "sqlite3 state.db 'SELECT count(*) FROM messages; -- {name}'"),
    (2, 'psql -h localhost -c "SELECT {n}"'),
    (4, "ssh me@host 'systemctl restart {name}'"),
    (2, "rsync -a dist/ me@host:/srv/{name}"),
    (2, "kubectl get pods -n {name}"),
    (1, "terraform plan -out {name}.plan"),
    (3, "sudo systemctl status {name}  # is it up?"),
    (4, "FOO={n} timeout 60 ./scripts/{name}.sh"),
    (3, "npm run dev &"),
    (3, "nohup python3 -m http.server {n} > /tmp/{name}.log 2>&1 &"),
    (3, "for f in *.md; do wc -w \"$f\"; done"),
    (2, "if [ -f {name} ]; then rm {name}; else touch {name}; fi"),
    (2, "echo $(git rev-parse HEAD) > /tmp/{name}"),
    (2, "brew install {name}"),
)  # fmt: skip
PATHS: Final = (
    (30, "/home/me/work/app/src/{name}.py"),
    (12, "/home/me/work/app/tests/test_{name}.py"),
    (12, "src/{name}.py"),
    (10, "./web/src/{name}.ts"),
    (6, "web/src/{name}.tsx"),
    (6, "/Users/me/Code/shop/{name}.js"),
    (4, "C:\\Users\\me\\app\\{name}.cs"),
    (3, "C:/work/{name}.ps1"),
    (6, "/srv/infra/{name}.yaml"),
    (3, ".github/workflows/{name}.yml"),
    (10, "docs/{name}.md"),
    (4, "/home/me/notes/{name} notes.md"),
    (5, "cmd/{name}.go"),
    (5, "crates/core/src/{name}.rs"),
    (4, "web/styles/{name}.css"),
    (3, "web/{name}.html"),
    (4, "migrations/{n}_{name}.sql"),
    (3, "pyproject.toml"),
    (3, "package.json"),
    (2, "Dockerfile"),
    (1, "Makefile"),
    (2, "/home/me/.bashrc"),
    (1, "src/{name}.java"),
    (1, "lib/{name}.rb"),
    (1, "src/{name}.cpp"),
    (1, "../other/{name}.sh"),
)  # fmt: skip
ACTIONS: Final = {
    "memory": ("add", "add", "replace", "read", "remove"),
    "cronjob": ("create", "list", "list", "remove", "pause"),
    "skill_manage": ("create", "patch", "edit", "delete"),
    "process": ("poll", "log", "kill", "list"),
}
SITES: Final = (
    "https://docs.python.org/3/library/{name}.html",
    "http://localhost:3000/{name}",
    "https://github.com/example/{name}/issues/{n}",
    "https://example.org/{name}?p={n}",
)
# Whose arguments are no more than one text.
ASKED: Final = {"web_search": "query", "session_search": "query", "image_generate": "prompt",
                "text_to_speech": "text", "clarify": "question", "execute_code": "code",
                "vision_analyze": "question", "skill_view": "name", "browser_type": "text",
                "browser_click": "ref"}  # fmt: skip
BACKGROUND_SHARE: Final = 0.03
FAILURE_SHARE: Final = 0.08
FILE_TOOLS: Final = frozenset({"read_file", "write_file", "search_files", "patch"})


class Pool(Generic[T]):
    """Patterns of which some are taken more often than others."""

    def __init__(self, weighted: Iterable[tuple[int, T]]) -> None:
        taken = list(weighted)
        self._patterns = [pattern for _, pattern in taken]
        self._limits = list(itertools.accumulate(weight for weight, _ in taken))

    def take(self, rng: Random) -> T:
        """One of them."""
        return self._patterns[bisect(self._limits, rng.random() * self._limits[-1])]


@dataclass(frozen=True)
class Stream:
    """An endless text, cut anywhere a word begins."""

    text: str
    starts: list[int]
    bytes_per_character: float

    def cut(self, rng: Random, size_bytes: int) -> str:
        """About *size_bytes* of it, from a random word on."""
        length = max(2, int(size_bytes / self.bytes_per_character))
        start = self.starts[int(rng.random() * len(self.starts))]
        piece = self.text[start : start + length]
        while len(piece) < length:
            piece += "\n" + self.text[: length - len(piece)]
        return piece


class Texts:
    """Everything that is said in one history."""

    def __init__(self, rng: Random) -> None:
        latin = _made_up_words(rng)
        self.english = _stream(rng, ENGLISH.split() + latin)
        self.code = _code_stream(rng)
        spoken = [
            (60, self.english),
            (10, _stream(rng, GERMAN.split() + latin[:200])),
            (9, _stream(rng, _chinese_words(rng), joint="")),
            (4, _stream(rng, JAPANESE.split(), joint="")),
            (3, _stream(rng, KOREAN.split())),
            (3, _stream(rng, ARABIC.split())),
            (3, _stream(rng, EMOJI.split())),
            (8, self.code),
        ]
        self._spoken = [stream for _, stream in spoken]
        self._weights = list(itertools.accumulate(weight for weight, _ in spoken))
        self._commands = Pool(COMMANDS)
        self._paths = Pool(PATHS)
        self._failures = Pool((weight, (code, text)) for weight, code, text in FAILURES)

    def language(self, rng: Random) -> Stream:
        """The script in which somebody speaks."""
        return rng.choices(self._spoken, cum_weights=self._weights)[0]

    def arguments(self, rng: Random, tool: str) -> dict[str, Any]:
        """What a tool is asked to do."""
        if tool == "terminal":
            asked = {"command": _filled(rng, self._commands.take(rng)), "timeout": 60}
            return asked | {"background": True} if rng.random() < BACKGROUND_SHARE else asked
        if tool in FILE_TOOLS:
            return self._about_file(rng, tool)
        if tool in ACTIONS:
            return {"action": rng.choice(ACTIONS[tool]), "name": _name(rng)}
        if tool in ASKED:
            return {ASKED[tool]: self.english.cut(rng, 60)}
        if tool in ("delegate_task", "todo"):
            return self._pieces(rng, tool)
        return {"url": _filled(rng, rng.choice(SITES))}

    def _pieces(self, rng: Random, tool: str) -> dict[str, Any]:
        pieces = [{"goal": self.english.cut(rng, 80)} for _ in range(rng.randint(1, 3))]
        if tool == "todo":
            return {"todos": [{"content": piece["goal"]} for piece in pieces]}
        return {"tasks": pieces} if len(pieces) > 1 else {**pieces[0]}

    def _about_file(self, rng: Random, tool: str) -> dict[str, Any]:
        path = _filled(rng, self._paths.take(rng))
        if tool == "read_file":
            return {"path": path, "offset": 1, "limit": 500}
        if tool == "write_file":
            return {"path": path, "content": self.code.cut(rng, 300)}
        if tool == "search_files":
            return {"pattern": _name(rng), "path": path.rpartition("/")[0] or "."}
        old, new = self.code.cut(rng, 60), self.code.cut(rng, 60)
        return {"path": path, "old_string": old, "new_string": new}

    def tool_result(
        self, rng: Random, tool: str, arguments: dict[str, Any], size_bytes: int
    ) -> str:
        """What a tool gave back: JSON, now and then a failure, now and then plain text."""
        dice = rng.random()
        if dice < FAILURE_SHARE:
            return json.dumps(self._failure(rng, tool, arguments))
        stream = self.code if dice < 0.7 else self.english
        output = f"{rng.getrandbits(48):012x} /srv/{_name(rng)}.py\n" + stream.cut(rng, size_bytes)
        if dice > 0.93:
            return output
        if tool == "terminal":
            result = {"output": output, "exit_code": 0, "error": None}
        else:
            result = {"success": True, "content": output, "error": None}
        return json.dumps(result, ensure_ascii=False)

    def _failure(self, rng: Random, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool != "terminal":
            error = {"error": _filled(rng, rng.choice(ERRORS))}
            return error if rng.random() < 0.5 else {"success": False} | error
        code, pattern = self._failures.take(rng)
        if code == 1 and "test" in arguments["command"]:
            pattern = FAILED_TEST
        text = _filled(rng, pattern)
        return {"output": text, "exit_code": code, "error": text.rpartition("\n")[2]}


def title(rng: Random) -> str:
    """A title as a small model makes it."""
    words = ENGLISH.split()[25:]
    return " ".join(rng.choices(words, k=3 + int(rng.random() * 3))).capitalize()


def _name(rng: Random) -> str:
    return NAMES[int(rng.random() * len(NAMES))]


def _filled(rng: Random, pattern: str) -> str:
    """A pattern with a name and a number of its own."""
    return pattern.format(n=int(rng.random() * 9000), name=_name(rng))


def _made_up_words(rng: Random) -> list[str]:
    syllables = SYLLABLES.split()
    return ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(RARE_WORDS)]


def _chinese_words(rng: Random) -> list[str]:
    pairs = ["".join(rng.choices(CHINESE, k=rng.choice((1, 2, 2, 3)))) for _ in range(1500)]
    return [*pairs, "\uff0c", "\u3002"]


def _stream(rng: Random, words: list[str], joint: str = " ") -> Stream:
    """Words by Zipf's law: the n-th is n times rarer than the first."""
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    return _as_stream(rng.choices(words, cum_weights=weights, k=STREAM_WORDS), joint)


def _code_stream(rng: Random) -> Stream:
    lines = []
    for number in range(STREAM_WORDS // 8):
        name = _name(rng)
        lines.append(
            rng.choice(
                (
                    f"def {name}(self, {_name(rng)}: int) -> None:\n",
                    f"    return self._{name}[{number % 97}]\n",
                    f"{number:>6}  INFO  {name} finished in {rng.random():.3f} s\n",
                    f"-    {name} = None\n+    {name} = {_name(rng)}()\n",
                    f"src/{name}.py:{number % 900}: {rng.choice(ENGLISH.split())}\n",
                    f'{{"{name}": {number}, "ok": true, "items": []}}\n',
                )
            )
        )
    return _as_stream(lines, "")


def _as_stream(words: list[str], joint: str) -> Stream:
    text = joint.join(words)
    starts = [0, *itertools.accumulate(len(word) + len(joint) for word in words[:-1])]
    return Stream(text, starts, len(text.encode()) / len(text))
