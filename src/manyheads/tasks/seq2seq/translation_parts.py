"""Texts as a translation model can read them: normalized, in parts that are as long as in training, and joined again.

Each line of a text is translated separately, without its indentation and bullet, which the translation repeats. What
has no letters, such as 123 or ```, or nothing but code and placeholders, is repeated, too. A line is divided into
sentences if training texts rarely had as many, or if it is longer than any of them. A sentence that is still too long
is divided further. See `PartReader` and `join_candidates`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest

from manyheads.tasks.model_inputs import ModelInput
from manyheads.tasks.seq2seq.settings import NO_OPTIONS, TextOptions
from manyheads.text.markup.copyable_spans import (
    Rewrite,
    Span,
    copyable_spans,
    is_address,
    mask,
    restore,
    without_copyable_spans,
)
from manyheads.text.markup.line_layout import LINE_BREAK, content_spans
from manyheads.text.terms.glossary import FoundTerm, find_terms
from manyheads.text.tokens.sentence_splitting import split_long, split_sentences
from manyheads.text.tokens.text_profile import TextProfile
from manyheads.text.tokens.tokenizer import Token, Tokenizer
from manyheads.text.tokens.words import is_blank, is_chinese_or_kana

_FINAL = ".!?。！？ "


@dataclass(frozen=True)
class Translation:
    """One candidate translation."""

    text: str
    log_probability: float
    score: float
    finished: bool  # False if it reached the maximum length
    mean_log_probability: float = 0.0  # of a token, EOS included; of a text in parts, of the least probable part


@dataclass(frozen=True)
class Part:
    """A part of a text, and what the model reads for it."""

    start: int
    end: int
    source: str  # normalized, not in capitals unless training texts were, with placeholders
    is_upper: bool = False  # the translation is to be in capitals
    assigned: Mapping[str, str] = field(default_factory=dict)  # the placeholder of each span that is copied
    copied: Sequence[str] = ()  # the spans that a translation should repeat
    aside: Sequence[str] = ()  # those that the model does not read, since it has not learned to copy them
    terms: Mapping[str, int] = field(default_factory=dict)  # what the model's output must contain, and how often
    kept: Sequence[str] = ()  # placeholders that it must contain as often as the source, whatever the settings
    prefix: str = ""  # what the translation begins with
    forced: str = ""  # what the model's output begins with: the prefix, with placeholders and not in capitals

    @property
    def is_copied(self) -> bool:
        """Whether there is nothing to translate: no letter outside code, markup and placeholders."""
        text = without_copyable_spans(self.source, "") if self.copied else self.source
        return not self.terms and not any(map(str.isalpha, text))

    @property
    def has_requirements(self) -> bool:
        """Whether the options of the text require something of this part."""
        return bool(self.terms or self.kept or self.forced)

    def finish(self, output: str) -> str:
        """Return the model's output as the translation of this part; what was set aside is put at its end."""
        if not self.is_upper:
            text = restore(output, self.assigned).text
        else:
            start = len(self.forced) if self.forced and output.startswith(self.forced) else 0
            text = (self.prefix if start else "") + restore(output[start:].upper(), self.assigned).text
        if not self.aside:
            return text
        body = text.rstrip(_FINAL)
        return " ".join([*([body] if body else []), *self.aside]) + text[len(body) :]

    def missing(self, translation: str) -> list[str]:
        """Return the spans that a translation should repeat and does not."""
        return [span for span in self.copied if span not in translation]


@dataclass(frozen=True)
class PartReader:
    """Prepares texts for a model that was trained on texts of this profile, with at most `longest` tokens."""

    tokenizer: Tokenizer
    longest: int
    profile: TextProfile | None
    language: str

    def parts(
        self,
        texts: Sequence[str],
        options: Sequence[TextOptions] | None = None,
        ids_by_source: dict[str, list[int]] | None = None,
    ) -> list[list[Part]]:
        """Return the parts of each text, with what its options require of them; one without letters has none.

        `ids_by_source` receives the token ids of the sources that have been encoded on the way.
        """
        options = [NO_OPTIONS] * len(texts) if options is None else options
        lines = [
            (index, self._part(text, start, end, options[index]))
            for index, text in enumerate(texts)
            if not is_blank(text)
            for start, end in content_spans(text, self.language)
        ]
        encoded = self.tokenizer.encode_batch([part.source for _, part in lines])
        parts: list[list[Part]] = [[] for _ in texts]
        for (index, line), ids in zip(lines, encoded, strict=True):
            text, own = texts[index], options[index]
            content = text[line.start : line.end]
            if self._is_too_long(content, len(ids), own):
                parts[index] += self._split(text, line.start, line.end, own)
            elif (own.prefix or not line.is_copied) and not is_blank(content):
                parts[index].append(line)
                if ids_by_source is not None:
                    ids_by_source[line.source] = ids
        return [
            self._constrained(text, found, own) if found and not own.is_empty else found
            for text, found, own in zip(texts, parts, options, strict=True)
        ]

    def _constrained(self, text: str, parts: Sequence[Part], options: TextOptions) -> list[Part]:
        """Return the parts with the terms that were divided, and the first with the prefix."""
        first, *rest = [_with_divided_terms(part, text, parts, options) for part in parts]
        return [self._with_prefix(first, options.prefix) if options.prefix else first, *rest]

    def whole(self, text: str) -> Part:
        """Return a text as one part, however long it is."""
        return self._part(text, 0, len(text))

    def _is_too_long(self, text: str, n_tokens: int, options: TextOptions) -> bool:
        if n_tokens > self.longest:
            return True
        if self.profile is None:
            return False
        return len(split_sentences(text, self.language, _spans(options, text))) > self.profile.max_sentences

    def _split(self, text: str, line_start: int, line_end: int, options: TextOptions) -> list[Part]:
        parts = []
        line = text[line_start:line_end]
        kept = _spans(options, line)

        def fits(text: str) -> bool:
            return len(self.tokenizer.encode(self._part(text, 0, len(text), options).source)) <= self.longest

        for start, end in split_sentences(line, self.language, kept):
            own = [(first - start, last - start) for first, last in kept if start <= first and last <= end]
            within = split_long(line[start:end], fits, self.language, own)
            begin = line_start + start
            parts += [self._part(text, begin + first, begin + last, options) for first, last in within]
        return [part for part in parts if options.prefix or not part.is_copied]

    def _part(self, text: str, start: int, end: int, options: TextOptions = NO_OPTIONS) -> Part:
        text = text[start:end]
        source = text if self.profile is None else self.profile.normalize(text)
        spans = copyable_spans(source)
        if not spans and options.is_empty:  # most texts
            if self.profile is None or not self.profile.needs_lower(source):
                return Part(start, end, source)
            return Part(start, end, self.profile.sentence_case(source), is_upper=True)
        copied = tuple(dict.fromkeys(source[first:last] for first, last in spans))
        aside = self._aside(copied)
        for span in aside:
            source = re.sub(rf"\s*(?:\({re.escape(span)}\)|<{re.escape(span)}>|{re.escape(span)})", "", source).strip()
        if aside and not any(map(str.isalnum, source)):
            source = ""
        assigned = self.tokenizer.placeholders.assign(source)
        masked = mask(source, assigned).text
        is_upper = self.profile is not None and self.profile.needs_lower(masked)
        terms: dict[str, int] = {}
        kept: dict[str, str] = {}
        if not options.is_empty:
            found = _translatable(options.find(source, ignore_case=is_upper), source)
            own = [(one.start, one.end) for one in found if one.term in options.keep]
            assigned = self.tokenizer.placeholders.assign(source, kept=own)
            masked = mask(source, assigned, own).text
            is_upper = is_upper or (self.profile is not None and self.profile.needs_lower(masked))
            kept = {source[first:last]: assigned.get(source[first:last], "") for first, last in own}
            copied = tuple(dict.fromkeys([*copied, *kept]))
            terms = _required_terms(found, source, options, kept, is_upper=is_upper)
        if is_upper and self.profile is not None:
            masked = self.profile.sentence_case(masked)
        symbols = tuple(symbol for symbol in kept.values() if symbol)
        return Part(start, end, masked, is_upper, assigned, copied, aside, terms, symbols)

    @staticmethod
    def _with_prefix(part: Part, prefix: str) -> Part:
        names = [text for text, symbol in part.assigned.items() if symbol in part.kept]
        spans = [(term.start, term.end) for term in find_terms(prefix, names)]
        masked = mask(prefix, part.assigned, spans).text
        return replace(
            part, prefix=prefix, forced=masked.capitalize() if part.is_upper and masked.isupper() else masked
        )

    def _aside(self, copied: Sequence[str]) -> list[str]:
        """The URLs and e-mail addresses, unless the model has placeholders: it would spoil them and the sentence."""
        if self.profile is None or self.tokenizer.placeholders.symbols:
            return []
        return [span for span in copied if is_address(span)]


def _spans(options: TextOptions, text: str) -> list[Span]:
    """Where the terms of the options are in a text, which is not divided there."""
    return [] if options.is_empty else [(term.start, term.end) for term in options.find(text)]


def _with_divided_terms(part: Part, text: str, parts: Sequence[Part], options: TextOptions) -> Part:
    """Return a part with the terms that begin in it and are so long that they had to be divided."""
    wanted = Counter(part.terms)
    for term in options.find(text):
        is_whole = any(own.start <= term.start and term.end <= own.end for own in parts)
        if part.start <= term.start < part.end and not is_whole:
            target = options.glossary.get(term.term, text[term.start : term.end])
            wanted[" ".join(target.split())] += 1
    return replace(part, terms=dict(wanted))


def _translatable(found: Sequence[FoundTerm], source: str) -> list[FoundTerm]:
    """The terms that are not inside code, markup or a URL, which is repeated anyway."""
    copied = copyable_spans(source)
    return [term for term in found if not any(start <= term.start and term.end <= end for start, end in copied)]


def _required_terms(
    found: Sequence[FoundTerm], source: str, options: TextOptions, kept: Mapping[str, str], *, is_upper: bool
) -> dict[str, int]:
    """How often the model's output must contain each target term, and each span to keep that has no placeholder."""
    wanted: Counter[str] = Counter()
    for term in found:
        text = source[term.start : term.end]
        if term.term in options.glossary:
            wanted[" ".join(options.glossary[term.term].split())] += 1
        elif not kept[text]:
            wanted[text.lower() if is_upper else text] += 1
    return dict(wanted)


def masked_tokens(tokenizer: Tokenizer, text: str, assigned: Mapping[str, str]) -> list[Token]:
    """Return the tokens of a text with placeholders for what is copied; the token of one has the span it stands for."""
    masked = mask(text, assigned)
    return [
        Token(token.text, token.id, *masked.to_original(token.start, token.end))
        for token in tokenizer.iter_tokens(masked.text)
    ]


def with_copied_spans(model_input: ModelInput, restored: Rewrite) -> ModelInput:
    """Return a model input whose answer has the spans that were copied; `restored` is its answer with them."""

    def moved(token: Token) -> Token:
        return Token(token.text, token.id, *restored.from_original(token.start, token.end))

    bos, *target = model_input.target
    last = None if model_input.last is None else moved(model_input.last)
    return replace(model_input, answer=restored.text, target=(bos, *map(moved, target)), last=last)


def join_candidates(
    text: str, parts: Sequence[Part], candidates: Sequence[Sequence[Translation]], n_best: int, *, are_samples: bool
) -> list[Translation]:
    """Return the best translations of a whole text from those of its parts, best first.

    They are the combinations with the highest mean score; of samples, the first of each part together, the second, …
    Their log-probability is the sum.
    """
    if are_samples:
        combinations = [list(combination) for combination in zip(*candidates, strict=True)]
    else:
        combinations = _best_combinations(candidates, n_best)
    return [_joined(text, parts, combination) for combination in combinations]


def _best_combinations(candidates: Sequence[Sequence[Translation]], n_best: int) -> list[list[Translation]]:
    """Return the combinations of one candidate per part with the highest total score, best first."""
    # By part: the chosen candidates, each with the index of the combination of the parts before that it continues.
    steps: list[list[tuple[int, Translation]]] = []
    totals = [0.0]
    for own in candidates:
        extended = (
            (total + candidate.score, index, candidate) for index, total in enumerate(totals) for candidate in own
        )
        best = nlargest(n_best, extended, key=lambda entry: entry[0])
        totals = [total for total, _, _ in best]
        steps.append([(index, candidate) for _, index, candidate in best])
    combinations = []
    for index in range(len(totals)):
        chosen = []
        for step in reversed(steps):
            index, candidate = step[index]
            chosen.append(candidate)
        combinations.append(chosen[::-1])
    return combinations


def has_layout(text: str, parts: Sequence[Part]) -> bool:
    """Return whether a text has several parts, or something around its only one."""
    return len(parts) > 1 or (parts[0].start, parts[0].end) != (0, len(text))


def part_spans(
    text: str, parts: Sequence[Part], translations: Sequence[Translation]
) -> list[tuple[int, int, int, int]]:
    """Return (start, end) of each part in the text, and (start, end) of its translation in the joined one."""
    spans = []
    position = 0
    for part, separator, translation in zip(parts, _separators(text, parts, translations), translations, strict=True):
        position += len(separator)
        spans.append((part.start, part.end, position, position + len(translation.text)))
        position += len(translation.text)
    return spans


def _joined(text: str, parts: Sequence[Part], chosen: Sequence[Translation]) -> Translation:
    separators = _separators(text, parts, chosen)
    pieces = [
        piece
        for separator, translation in zip(separators, chosen, strict=True)
        for piece in (separator, translation.text)
    ]
    return Translation(
        "".join([*pieces, text[parts[-1].end :]]),
        sum(translation.log_probability for translation in chosen),
        sum(translation.score for translation in chosen) / len(chosen),
        all(translation.finished for translation in chosen),
        min(translation.mean_log_probability for translation in chosen),
    )


def _separators(text: str, parts: Sequence[Part], translations: Sequence[Translation]) -> list[str]:
    """Return what is before each translated part: layout as in the text, no space in Chinese or Japanese."""
    separators = [text[: parts[0].start]]
    before = translations[0].text[-1:]
    for previous, part, translation in zip(parts, parts[1:], translations[1:], strict=False):
        gap = text[previous.end : part.start]
        if gap.strip() or LINE_BREAK.search(gap):
            before = ""  # a new line
        elif not translation.text or not before or _is_unspaced(before) or _is_unspaced(translation.text[0]):
            gap = ""
        else:
            gap = gap or " "
        separators.append(gap)
        before = translation.text[-1:] or before
    return separators


def _is_unspaced(character: str) -> bool:
    """Return whether a character is Chinese, kana, or punctuation as wide as they are."""
    return is_chinese_or_kana(character) or "\u3001" <= character <= "\u303f" or "\uff01" <= character <= "\uffee"
