"""What the user said in a conversation, and whether it supports a fact.

A model proposes facts; this module decides, without a model, whether they rest on the user's own
words. Results of tools, attached files, quoted messages and answers of the model never count:
others may have written them.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.messages import own_words, plain_text
from hermes_state.facts import Evidence, digest_of
from hermes_state.search.language import content_words, languages_of, stemmed
from hermes_state.search.tokens import composed, fold, token_texts, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.messages.rows import MessageRow
    from hermes_state.search.tokens import Token
    from hermes_state.store import SessionDB

MIN_QUOTED_TOKENS: Final = 2
MIN_SUPPORT: Final = 0.5  # of the content words of a fact in the messages that it quotes
MIN_SAME: Final = 0.8  # of the words of two facts that say the same
CLAUSE_END: Final = re.compile(r"[.,;:!?\n]|\b(?:but|although|aber|obwohl|mais|pero)\b")
SENTENCE_END: Final = ".!?:\n"
# Who a fact is about, and how that one relates to it: words that a model adds.
SUBJECTS: Final = "user users owner person nutzer benutzer utilisateur"
RELATIONS: Final = """
    prefer prefers preferred preference like likes want wants need needs use uses using work works
    working live lives name named names called call calls says said asked ask asks keep keeps
    always write writes own owns project machine mag will nutzt verwendet arbeitet wohnt heisst
    bevorzugt immer
"""
NO_PERSON: Final = "nobody"  # words: allow - as users write it
NEGATIONS: Final = f"""
    not no never none nor neither nothing {NO_PERSON} nowhere don doesn didn won wouldn isn aren
    wasn weren haven hasn hadn couldn shouldn mustn mightn needn shan ain dont doesnt didnt wont
    wouldnt isnt arent wasnt werent havent hasnt hadnt couldnt shouldnt mustnt cant cannot
    without avoid avoids dislike dislikes hate hates refuse refuses stop stopped nicht nichts
    niemand kein keine keinen keinem keiner keines nie niemals weder ohne anstatt statt ne pas
    jamais aucun aucune rien sans nunca jamas ninguno ninguna sin senza non mai nao nem sem niet
    geen nooit zonder inte ikke aldrig aldri ingen nigdy bez не нет ни никогда без 不 没 沒 無 无 别
"""
NEGATING_PAIRS: Final = frozenset({("can", "t"), ("instead", "of"), ("rather", "than")})
TRAILING: Final = "not never nicht nie niemals pas jamais nunca jamas niet inte ikke"
LETTER_APOSTROPHE: Final = "\u02bc"  # a letter for Unicode: it does not end a word
MAX_TRAILING: Final = 4
# Stems of verbs and nouns that have one value at a time.
SINGLE_VALUES: Final = """
    live work name call deploy port timezon zone birthday default version editor email address
    wohnt arbeitet heisst
"""


@functools.cache
def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


class OwnerMessage(NamedTuple):
    """A message of the user: its text, and the tokens of what they wrote in it."""

    id: int
    said_at: float
    text: str
    tokens: list[Token]

    def evidence(self, start: int, end: int) -> Evidence:
        """A part of the text as evidence."""
        digest = digest_of(self.text[start:end])
        return Evidence(self.id, start, end - start, digest, self.said_at)


def owner_messages(db: SessionDB, session_id: str) -> list[OwnerMessage]:
    """What the user wrote in a conversation, oldest first; undone messages do not count."""
    rows = db.messages.shown(session_id)
    return [_owner_message(row) for row in rows if _is_own(row)]


def _is_own(row: MessageRow) -> bool:
    return row.shown_role == "user" and not row.is_deleted and not row.observed


def _owner_message(row: MessageRow) -> OwnerMessage:
    tokens = [
        token._replace(start=token.start + place, end=token.end + place)
        for place, line in own_words(row.content)
        for token in tokens_of(fold(line))
    ]
    return OwnerMessage(row.id, row.timestamp, composed(plain_text(row.content)), tokens)


def find_quotation(quotation: str, messages: Sequence[OwnerMessage]) -> Evidence | None:
    """The latest place where the user wrote these words; None if they did not."""
    wanted = [token.text for token in tokens_of(fold(composed(quotation)))]
    if len(wanted) < MIN_QUOTED_TOKENS:
        return None
    for message in reversed(messages):
        texts = [token.text for token in message.tokens]
        for at in range(len(texts) - len(wanted) + 1):
            if texts[at : at + len(wanted)] == wanted:
                start, end = message.tokens[at].start, message.tokens[at + len(wanted) - 1].end
                if token_texts(message.text[start:end]) == wanted:  # nothing left out in between
                    return message.evidence(start, end)
    return None


class ContentWord(NamedTuple):
    """A word of a fact that says something: its stem, its place, and whether it is exact."""

    stem: str
    place: int
    is_exact: bool  # a name, a number or a part of an address


class FactWords(NamedTuple):
    """What a fact says, for comparisons."""

    words: tuple[ContentWord, ...]
    exact: frozenset[str]
    is_negated: bool

    @classmethod
    def of(cls, text: str, language: str = "") -> FactWords:
        """The words of a text."""
        folded = [token.text for token in tokens_of(fold(composed(text)))]
        spoken = language or language_of(folded)
        content = {*content_words(folded, [spoken])} - _set(SUBJECTS)
        exact = _exact(text)
        words = tuple(
            ContentWord(stem, place, word in exact)
            for place, (word, stem) in enumerate(zip(folded, stemmed(folded, spoken), strict=True))
            if word in content
        )
        return cls(words, exact, _is_negated(folded))

    @property
    def stems(self) -> tuple[str, ...]:
        """The stems of the words, in order."""
        return tuple(word.stem for word in self.words)

    def says_the_same(self, other: FactWords) -> bool:
        """Whether two facts are one."""
        return self._overlaps(other) and self.is_negated == other.is_negated

    def contradicts(self, other: FactWords) -> bool:
        """Whether only one of two facts can be true: they differ in a negation or in the value.

        A value is a name or a number at the end: of a property that has one value at a time, or
        after two words or more that both facts begin with.
        """
        if self._overlaps(other) or set(self.stems) == set(other.stems):
            return self.is_negated != other.is_negated
        pairs = zip(self.stems, other.stems, strict=False)
        common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        is_single = common > 1 or (common == 1 and self.stems[0] in _set(SINGLE_VALUES))
        values = self.words[common:], other.words[common:]
        return (
            is_single
            and self.is_negated == other.is_negated
            and all(map(_is_value, values))
            and not {word.stem for word in values[0]} & {word.stem for word in values[1]}
        )

    def _overlaps(self, other: FactWords) -> bool:
        mine, others = set(self.stems), set(other.stems)
        share = len(mine & others) / max(len(mine | others), 1)
        return self.exact == other.exact and (self.stems == other.stems or share >= MIN_SAME)


def _is_value(words: Sequence[ContentWord]) -> bool:
    """Whether words are one value, such as `Hetzner`, `New York` or `8080`."""
    if not words:
        return False
    is_together = words[-1].place - words[0].place == len(words) - 1
    return is_together and all(word.is_exact for word in words)


def language_of(words: Sequence[str]) -> str:
    """The language of a text by its script and its function words."""
    return languages_of(words, lambda _words: {})[0]


def _is_negated(tokens: Iterable[str]) -> bool:
    words = [part for token in tokens for part in token.split(LETTER_APOSTROPHE)]
    pairs = itertools.pairwise(words)
    return not (_set(NEGATIONS).isdisjoint(words) and NEGATING_PAIRS.isdisjoint(pairs))


def _exact(text: str) -> frozenset[str]:
    """Tokens of numbers, names, addresses and paths: they cannot be said in other words."""
    normal = composed(text)
    found: set[str] = set()
    for token in tokens_of(fold(normal)):
        before, written = normal[: token.start].rstrip(" \t\"'`*_-("), normal[token.start]
        begins = not before or before[-1] in SENTENCE_END
        is_name = written.isupper() and not begins and token.text not in _set(SUBJECTS)
        if is_name or any(character.isdigit() for character in token.text):
            found.add(token.text)
    for match in re.finditer(r"\S*[\w][/@\\.]\w\S*", normal):
        found.update(token.text for token in tokens_of(fold(match.group())))
    return frozenset(found)


def is_supported(text: str, messages: Sequence[OwnerMessage]) -> bool:
    """Whether messages of the user state a fact: with its names, numbers, words and polarity."""
    said = [token.text for message in messages for token in message.tokens]
    language = language_of(said)
    fact = FactWords.of(text, language)
    if not fact.exact <= set(said):
        return False
    relations = set(stemmed(RELATIONS.split(), language))
    words = set(fact.stems)
    words = (words - relations) or words
    stems = set(stemmed(said, language))
    if len(words & stems) < max(MIN_SUPPORT * len(words), 1):
        return False
    clause = max(_clauses(messages), key=lambda each: len(words & set(stemmed(each, language))))
    matched = [place for place, stem in enumerate(stemmed(clause, language)) if stem in words]
    return _is_negated_up_to(clause, max(matched, default=0)) == fact.is_negated


def _is_negated_up_to(clause: Sequence[str], place: int) -> bool:
    """Whether a clause negates a word: before it, or shortly after it, as in `mag Tee nicht`."""
    if _is_negated(clause[:place]):
        return True
    return not _set(TRAILING).isdisjoint(clause[place : place + MAX_TRAILING])


def _clauses(messages: Sequence[OwnerMessage]) -> list[list[str]]:
    """The tokens of the clauses of messages, latest message first."""
    clauses = [[""]]
    for message in reversed(messages):
        end = 0
        clauses.append([])
        for token in message.tokens:
            between = message.text[end : token.start]
            if CLAUSE_END.search(between) or CLAUSE_END.fullmatch(token.text):
                clauses.append([])
            clauses[-1].append(token.text)
            end = token.end
    return clauses


class Support(NamedTuple):
    """The evidence for a fact, or why there is none."""

    evidence: tuple[Evidence, ...]
    problem: str = ""


NO_QUOTATION: Final = "quote the user's own words in `quotes`, word for word"
NOT_SAID: Final = "these words are not in a message of the user: {}"
NOT_SUPPORTED: Final = "the quoted messages of the user do not state it; use the user's words"


def support(
    text: str, quotes: Sequence[str], messages: Sequence[OwnerMessage], *, must_quote: bool
) -> Support:
    """The evidence for a fact in messages of the user.

    Without quotations, unless one is required, the latest message that states the fact counts.
    """
    if not quotes and not must_quote:
        return _unquoted(text, messages)
    found = [find_quotation(quotation, messages) for quotation in quotes]
    evidence = tuple(dict.fromkeys(each for each in found if each is not None))
    if not evidence:
        return Support((), NOT_SAID.format("; ".join(quotes)[:200]) if quotes else NO_QUOTATION)
    quoted = {each.message_id for each in evidence}
    is_stated = is_supported(text, [message for message in messages if message.id in quoted])
    return Support(evidence) if is_stated else Support((), NOT_SUPPORTED)


def _unquoted(text: str, messages: Sequence[OwnerMessage]) -> Support:
    for message in reversed(messages):
        if message.tokens and is_supported(text, [message]):
            start, end = message.tokens[0].start, message.tokens[-1].end
            return Support((message.evidence(start, end),))
    return Support((), NOT_SUPPORTED)
