"""Function words and word forms of a query.

The index holds words as they were written. The forms of a word are found in the index's
list of terms: those with the same stem, in the languages of the query.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import Stemmer

# Words that say little about the subject of a question, as the tokenizer folds them.
FUNCTION_WORDS: Final = {
    "english": """
        a about after again all also am an and any are aren as at be because been before being
        between both but by can could couldn d did didn do does doesn doing don during each few for
        from had has hasn have haven having he her here hers him his how i if in into is isn it its
        just ll m may me might more most must my no nor not of off on once only or other our ours
        out over own re s same she should shouldn so some such t than that the their them then
        there these they this those through to too under until up upon us ve very was wasn we were
        weren what when where which while who whom whose why will with won would wouldn you your
    """,
    "german": """
        aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dem den denn
        der des die dies diese dieser dieses doch dort du durch ein eine einem einen einer eines er
        es euch fur gab hab habe haben hat hatte hatten ich ihm ihn ihr im in ist ja kann kein keine
        man mein meine mich mir mit nach nicht noch nur ob oder ohne schon sein seine sich sie sind
        so uber um und uns unser unter vom von vor wann war waren warum was weil welche welcher wem
        wen wenn wer werden wie wieder wir wird wo worden wurde wurden zu zum zur
    """,
    "french": """
        ai au aux avait avec avez avons c ce ces cet cette comment d dans de des donc du elle elles
        en est et etait etaient ete eu il ils j je l la le les leur lui m ma mais me mes moi mon n
        ne nos notre nous on ont ou par pas pour pourquoi qu quand que quel quelle quels qui quoi s
        sa sans se ses si son sont sur t ta te tes toi ton tu un une vos votre vous y
    """,
    "spanish": """
        al como con cual cuando de del desde donde e el ella ellas ellos en entre era eran es esa
        ese eso esta estaba estan este esto fue fueron ha han hasta hay he la las le les lo los mas
        me mi mis muy no nos nosotros o para pero por porque que quien se ser si sin sobre son su
        sus te tu tus un una unas unos y yo
    """,
    "italian": """
        ai al alla alle anche che chi ci come con cosa cui da dal dalla de degli dei del della delle
        di dove e ed era erano gli ha hai hanno ho i il in io la le lei li lo loro lui ma mi mia mio
        ne nei nel nella noi non o per perche piu quale quali quando quanto quello questa questo se
        si sia sono su sua sul sulla suo ti tra tu tua tuo un una uno voi
    """,
    "portuguese": """
        a ao aos as com como da das de dela dele delas deles do dos e ela elas ele eles em entre era
        eram essa esse esta estava este eu foi foram ha isso isto ja lhe mais mas me meu minha muito
        na nao nas nem no nos o onde os ou para pela pelo por porque quais qual quando que quem se
        sem ser seu seus so sua suas tem tinha um uma voce
    """,
    "dutch": """
        aan al als bij dan dat de deze die dit doen door een en er geen had heb heeft het hij hoe
        hun ik in is je kan kon maar meer met mij mijn naar niet nog nu of om omdat onder ons ook op
        over te tegen toen tot uit van veel voor waar waarom wanneer waren was wat we welke werd wie
        wij wil worden ze zich zij zijn zo
    """,
    "swedish": """
        alla att av blev den denna det detta dig din du dar efter ej eller en er ett fran for ha
        hade han har hon hur i icke inte jag kan med men mig min mot mycket ni nar och om oss pa sa
        sin ska som till under upp ut vad var varfor vi vid vilken vilka
    """,
    "russian": """
        а без был была были было быть в вам вас во вот все вы где да для до его ее если есть еще же
        за и из или им их к как какая какие какой когда который кто ли мне мои мой мы на над нас не
        него нет но о об он она они от по под почему при с сам свой себя со так там то тогда только
        ты у что чтобы это я
    """,
}  # fmt: skip
# Languages of scripts that Latin letters do not share.
SCRIPTS: Final = (
    ("russian", "\u0400-\u04ff"),
    ("greek", "\u0370-\u03ff"),
    ("armenian", "\u0530-\u058f"),
    ("arabic", "\u0600-\u06ff"),
    ("hindi", "\u0900-\u097f"),
    ("tamil", "\u0b80-\u0bff"),
)
# The most frequent words that only one of the languages has.
MARKERS: Final = {
    "english": "the", "german": "und", "french": "les", "spanish": "los", "italian": "che",
    "portuguese": "uma", "dutch": "het", "swedish": "och",
}  # fmt: skip
MIN_STEM_CHARACTERS: Final = 2
MIN_SHARE: Final = 50  # a language counts if its marker is at most this much rarer than another


@functools.cache
def _function_words(language: str) -> frozenset[str]:
    return frozenset(FUNCTION_WORDS.get(language, "").split())


@functools.cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    import Stemmer  # noqa: PLC0415 - loaded at the first question

    return Stemmer.Stemmer(language)


def languages_of(
    words: Sequence[str], count: Callable[[Sequence[str]], dict[str, int]]
) -> tuple[str, ...]:
    """The languages of a query: by script, by its function words, else those of the history.

    *count* returns the numbers of messages that contain terms.
    """
    text = "".join(words)
    for language, letters in SCRIPTS:
        if re.search(f"[{letters}]", text):
            return (language,)
    found = {
        language: len(_function_words(language).intersection(words)) for language in FUNCTION_WORDS
    }
    most = max(found.values())
    if most:
        return tuple(language for language, number in found.items() if number == most)
    numbers = count(list(MARKERS.values()))
    enough = max(max(numbers.values(), default=0) // MIN_SHARE, 1)
    present = (each for each, marker in MARKERS.items() if numbers.get(marker, 0) >= enough)
    return tuple(present) or ("english",)


def content_words(words: Sequence[str], languages: Iterable[str]) -> list[str]:
    """The words without function words, each once; all if no other is left."""
    ignored = frozenset[str]().union(*map(_function_words, languages))
    return list(dict.fromkeys([word for word in words if word not in ignored] or words))


def stemmed(words: Sequence[str], language: str) -> list[str]:
    """The stems of words in a language; the words themselves if it has no stemmer."""
    import Stemmer  # noqa: PLC0415 - as above

    known = language in Stemmer.algorithms()
    return list(_stemmer(language).stemWords(list(words))) if known else list(words)


def forms(
    word: str, languages: Iterable[str], with_prefix: Callable[[str], list[str]]
) -> list[str]:
    """The terms of the index that are forms of a word, itself first.

    *with_prefix* returns the terms that begin with a text.
    """
    found = {word: None}
    for language in languages:
        stemmer = _stemmer(language)
        stem = stemmer.stemWord(word)
        if len(stem) < MIN_STEM_CHARACTERS or word.isdigit():
            continue
        shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(stem, word, strict=False))
        length = min(len(list(shared)), max(len(stem) - 1, MIN_STEM_CHARACTERS))
        terms = with_prefix(word[:length])
        pairs = zip(terms, stemmer.stemWords(terms), strict=True)
        found |= dict.fromkeys(term for term, other in pairs if other == stem)
    return list(found)


def distance(one: str, other: str, limit: int) -> int:
    """The number of edits between two words, with swapped letters as one; at most *limit* + 1."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, expected in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != expected))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == expected:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def corrected(word: str, terms: Iterable[str], count: Callable[[list[str]], dict[str, int]]) -> str:
    """The most frequent of the terms nearest to a misspelled word; empty if none is near.

    Terms that are counted zero times are not used.
    """
    limit = 1 if len(word) < 7 else 2
    near: dict[str, int] = {}
    for term in terms:
        edits = distance(word, term, limit)
        if edits <= limit and term.isalpha():
            near[term] = edits
    numbers = count(list(near))
    used = [term for term in near if numbers.get(term)]
    return min(used, key=lambda term: (near[term], -numbers[term], term), default="")
