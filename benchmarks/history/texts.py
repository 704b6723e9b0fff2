"""Text in several scripts: long streams of words made once, of which messages are cuts."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

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
SYLLABLES: Final = "ba ke li mo ra tu ven dor sil pak ner qui zon hal fen gri lus mar tok wex"

MULTIMODAL_PICTURE: Final = {"type": "image_url", "image_url": {"url": "file:///tmp/shot.png"}}
FAILURES: Final = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/work/app/main.py", line {n}, in <module>\n    main()\n'
    '  File "/home/me/work/app/store.py", line {n}, in {name}\n    row = rows[{n}]\n'
    "IndexError: list index out of range",
    "bash: {name}: command not found",
    "fatal: not a git repository (or any of the parent directories): .git",
    "Error: connect ECONNREFUSED 127.0.0.1:{n}",
    "FAILED tests/test_{name}.py::test_{name} - AssertionError: assert {n} == 0",
)


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

    def language(self, rng: Random) -> Stream:
        """The script in which somebody speaks."""
        return rng.choices(self._spoken, cum_weights=self._weights)[0]

    def tool_result(self, rng: Random, size_bytes: int) -> str:
        """What a tool gave back: JSON, now and then a failure, now and then plain text."""
        dice = rng.random()
        if dice < 0.08:
            failure = FAILURES[int(rng.random() * len(FAILURES))]
            text = failure.format(n=int(rng.random() * 9000), name=_name(rng))
            return json.dumps({"output": text, "exit_code": 1, "error": text.splitlines()[-1]})
        stream = self.code if dice < 0.7 else self.english
        output = f"{rng.getrandbits(48):012x} /srv/{_name(rng)}.py\n" + stream.cut(rng, size_bytes)
        if dice > 0.93:
            return output
        return json.dumps({"output": output, "exit_code": 0, "error": None}, ensure_ascii=False)


def title(rng: Random) -> str:
    """A title as a small model makes it."""
    words = ENGLISH.split()[25:]
    return " ".join(rng.choices(words, k=3 + int(rng.random() * 3))).capitalize()


def _name(rng: Random) -> str:
    verbs, nouns = VERBS.split(), NOUNS.split()
    return f"{verbs[int(rng.random() * len(verbs))]}_{nouns[int(rng.random() * len(nouns))]}"


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
