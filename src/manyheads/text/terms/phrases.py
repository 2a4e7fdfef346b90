"""`Phrases`: which of the phrases that an output must contain it contains so far, token by token.

Outputs are compared as text, not as ids: a phrase counts however it is divided into tokens. Where phrases overlap, the
first and longest one counts, and a phrase counts only as whole words: "art" is not in "party". In Chinese, any
characters in a row are a word. The first letter of a phrase may be a capital.

A search asks for the state after each token: how far it has come (`level`), which ids go on with a phrase that is
missing (`required_ids`), whether the text may end here. States are numbers; each is computed once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from manyheads.text.tokens.surfaces import Surfaces
from manyheads.text.tokens.tokenizer import Tokenizer
from manyheads.text.tokens.words import is_chinese_or_kana


class _Form(NamedTuple):
    """One way to write a phrase, and where its tokens end if it is tokenized by itself."""

    text: bytes
    ends: tuple[int, ...]  # 0: the space before it is a token of its own
    starts_word: bool
    ends_word: bool
    may_follow_space: bool  # Chinese words are not separated


class _State(NamedTuple):
    n_forced: int  # bytes of the prefix
    counts: tuple[int, ...]  # occurrences of each phrase that later tokens cannot change
    before: str  # the last character before the tail; empty at the start
    tail: bytes  # the end of the output, which may become a phrase


class Phrases:
    """The phrases that an output must contain, each as often as `wanted` says, and the text that it begins with.

    `symbols` are the placeholders that it must have exactly as often; any other placeholder is not allowed.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        wanted: Mapping[str, int],
        *,
        prefix: str = "",
        symbols: Mapping[str, int] | None = None,
    ) -> None:
        self._surfaces = tokenizer.surfaces
        placeholders = {
            symbol: Surfaces.placeholder(number) for number, symbol in enumerate(tokenizer.placeholders.symbols)
        }
        exact = {} if symbols is None else symbols
        self.limited_ids: Sequence[int] = () if symbols is None else tokenizer.placeholder_ids
        self._wanted = (*wanted.values(), *exact.values())
        self._names = (*wanted, *exact)
        self._forms = [_forms(tokenizer, phrase) for phrase in wanted]
        self._forms += [[_Form(placeholders[symbol], (3,), False, False, True)] for symbol in exact]
        self._n_tokens = [max(len(form.ends) for form in forms) for forms in self._forms]
        self._prefix = _prefix_bytes(prefix, placeholders, has_prefix=self._surfaces.has_prefix)
        self.n_levels = sum(count * n for count, n in zip(self._wanted, self._n_tokens, strict=True))
        self.n_tokens = self.n_levels + (len(tokenizer.encode(prefix)) if prefix else 0)
        # How many tokens the phrases take at least, if each is tokenized as usual.
        self.n_needed = sum(
            count * min(len(form.ends) for form in forms)
            for count, forms in zip(self._wanted, self._forms, strict=True)
        )
        self.max_length: int | None = None
        self._states: list[_State] = []
        self._numbers: dict[_State, int] = {}
        self._follow: dict[tuple[int, int], int] = {}
        self._levels: dict[int, int] = {}
        self._found: dict[int, tuple[int, ...]] = {}
        self._required: dict[int, list[int]] = {}
        self._allowed: dict[int, list[int]] = {}
        self.start = self._number(_State(0, (0,) * len(self._wanted), "", b""))

    def follow(self, state: int, token_id: int) -> int:
        """The state after one more token."""
        key = (state, token_id)
        if key not in self._follow:
            old, own = self._states[state], self._surfaces.of[token_id]
            n_forced = min(len(self._prefix), old.n_forced + len(own))
            self._follow[key] = self._number(_State(n_forced, *self._settled(old, own)))
        return self._follow[key]

    def after(self, ids: Iterable[int]) -> int:
        """The state after these tokens."""
        state = self.start
        for token_id in ids:
            state = self.follow(state, token_id)
        return state

    def level(self, state: int) -> int:
        """How many tokens of the phrases the output has, including those of one that is not complete yet."""
        if state not in self._levels:
            done = zip(self._occurrences(state), self._wanted, self._n_tokens, strict=True)
            self._levels[state] = sum(min(own, wanted) * n for own, wanted, n in done) + max(
                (sum(end <= length for end in form.ends) for form, length in self._begun(state)), default=0
            )
        return self._levels[state]

    def may_end(self, state: int) -> bool:
        """Whether the output may end here."""
        return self._states[state].n_forced == len(self._prefix) and not self.missing(state)

    def missing(self, state: int) -> dict[str, int]:
        """The phrases and placeholders that an output which ends here lacks, and how many of each."""
        found = zip(self._names, self._occurrences(state), self._wanted, strict=True)
        return {name: wanted - own for name, own, wanted in found if own < wanted}

    def allowed_ids(self, state: int) -> Sequence[int] | None:
        """The only ids that may follow, while the output is still within its prefix; None: any."""
        n_forced = self._states[state].n_forced
        if n_forced == len(self._prefix):
            return None
        if n_forced not in self._allowed:
            rest = self._prefix[n_forced:]
            self._allowed[n_forced] = [*self._surfaces.beginning(rest), *self._surfaces.exceeding(rest)]
        return self._allowed[n_forced]

    def required_ids(self, state: int) -> Sequence[int]:
        """The ids that begin or continue a phrase that is missing."""
        if state not in self._required:
            found: set[int] = set()
            for form, length in self._begun(state):
                found |= self._continuing(form, form.text[length:])
            is_start, last = self._states[state] == self._states[self.start], self._last(state)
            for form in self._missing_forms(state):
                if not (form.starts_word and _is_word(last)):
                    found |= self._continuing(form, form.text)
                if form.may_follow_space or (is_start and self._surfaces.has_prefix):
                    found |= self._continuing(form, b" " + form.text)
            self._required[state] = sorted(found)
        return self._required[state]

    def _number(self, state: _State) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def _continuing(self, form: _Form, rest: bytes) -> set[int]:
        """The ids with which an output goes on with the rest of a form, also those with punctuation after it."""
        beyond = {
            token_id
            for token_id in self._surfaces.exceeding(rest)
            if not _character(self._surfaces.of[token_id], len(rest)).isalnum()
        }
        return {*self._surfaces.beginning(rest), *beyond}

    def _missing_forms(self, state: int) -> list[_Form]:
        found = zip(self._forms, self._occurrences(state), self._wanted, strict=True)
        return [form for forms, own, wanted in found if own < wanted for form in forms]

    def _begun(self, state: int) -> list[tuple[_Form, int]]:
        """The forms of missing phrases that the output ends with the beginning of, and how long that is."""
        tail, before = self._states[state].tail, self._states[state].before
        found = []
        for form in self._missing_forms(state):
            for length in range(min(len(form.text) - 1, len(tail)), 0, -1):
                start = len(tail) - length
                last = _character_before(tail, start) or (before if not start else "")
                if tail.endswith(form.text[:length]) and not (form.starts_word and _is_word(last)):
                    found.append((form, length))
                    break
            else:
                if self._last(state) == " ":
                    found.append((form, 0))
        return found

    def _last(self, state: int) -> str:
        """The last character of the output."""
        tail = self._states[state].tail
        return _character_before(tail, len(tail)) or self._states[state].before

    def _occurrences(self, state: int) -> tuple[int, ...]:
        """How often each phrase occurs in an output that ends here."""
        if state not in self._found:
            own = self._states[state]
            self._found[state] = self._scan(own.counts, own.before, own.tail, is_final=True)[0]
        return self._found[state]

    def _settled(self, old: _State, added: bytes) -> tuple[tuple[int, ...], str, bytes]:
        return self._scan(old.counts, old.before, old.tail + added, is_final=False)

    def _scan(
        self, counts: tuple[int, ...], before: str, tail: bytes, *, is_final: bool
    ) -> tuple[tuple[int, ...], str, bytes]:
        """Count phrases from left to right, up to where more text could change the count unless the text is final."""
        found, position = list(counts), 0
        while position < len(tail):
            if not is_final and self._is_open(tail, position, before):
                break
            matches = [
                (len(form.text), form is forms[0], number)
                for number, forms in enumerate(self._forms)
                for form in forms
                if _matches(form, tail, position, before)
            ]
            if matches:
                length, _, number = max(matches)
                found[number] = min(found[number] + 1, self._wanted[number])
            else:
                length = _character_length(tail, position)
            position += length
            before = _character_before(tail, position)
        return tuple(found), before, tail[position:]

    def _is_open(self, tail: bytes, position: int, before: str) -> bool:
        """Whether more text could make a phrase of the tail from here, or unmake one."""
        rest = tail[position:]
        if _is_cut(rest):
            return True
        for forms in self._forms:
            for form in forms:
                if form.starts_word and _is_word(before):
                    continue
                if len(form.text) > len(rest) and form.text.startswith(rest):
                    return True
                if form.ends_word and rest.startswith(form.text):
                    after = rest[len(form.text) :]
                    if not after or _is_cut(after):
                        return True
        return False


def _forms(tokenizer: Tokenizer, phrase: str) -> list[_Form]:
    """A phrase as it is, and with a capital."""
    return [_form(tokenizer, text) for text in dict.fromkeys((phrase, phrase[:1].upper() + phrase[1:]))]


def _form(tokenizer: Tokenizer, text: str) -> _Form:
    is_joined = is_chinese_or_kana(text[0])
    if is_joined:
        ids = tokenizer.encode_continuation(text)
    else:
        ids = tokenizer.encode(text if tokenizer.surfaces.has_prefix else f" {text}")
    ends, length = [], 0 if is_joined else -1
    for token_id in ids:
        length += len(tokenizer.surfaces.of[token_id])
        ends.append(length)
    return _Form(text.encode(), tuple(ends), _is_word(text[0]), _is_word(text[-1]), not is_joined)


def _prefix_bytes(prefix: str, placeholders: Mapping[str, bytes], *, has_prefix: bool) -> bytes:
    if not prefix:
        return b""
    text = (" " if has_prefix else "").encode() + prefix.encode()
    for symbol, own in placeholders.items():
        text = text.replace(symbol.encode(), own)
    return text


def _matches(form: _Form, tail: bytes, position: int, before: str) -> bool:
    if not tail.startswith(form.text, position) or (form.starts_word and _is_word(before)):
        return False
    return not (form.ends_word and _is_word(_character(tail, position + len(form.text))))


def _is_word(character: str) -> bool:
    return character.isalnum() and not is_chinese_or_kana(character)


def _expected_length(first: int) -> int:
    """The number of bytes of a character that begins with this byte; placeholders begin with 0xFF."""
    if first < 0xC0:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 or first == 0xFF else 4


def _is_cut(text: bytes) -> bool:
    """Whether a text is the beginning of one character."""
    return text[0] >= 0xC0 and len(text) < _expected_length(text[0]) and all(0x80 <= byte < 0xC0 for byte in text[1:])


def _character_length(text: bytes, position: int) -> int:
    end, longest = position + 1, position + _expected_length(text[position])
    while end < min(longest, len(text)) and 0x80 <= text[end] < 0xC0:
        end += 1
    return end - position


def _character(text: bytes, position: int) -> str:
    """The character that begins at a position; empty after the end, and for one that is not complete."""
    if position >= len(text):
        return ""
    return text[position : position + _character_length(text, position)].decode(errors="ignore")


def _character_before(text: bytes, position: int) -> str:
    """The character that ends at a position; empty at the start. What is not UTF-8 becomes U+FFFD."""
    start = position - 1
    while start > 0 and 0x80 <= text[start] < 0xC0:
        start -= 1
    return text[start:position].decode(errors="replace")[-1:] if position > 0 else ""
