"""Shortcuts of text handling give what the general way gives, on texts that take them and on texts that just do not."""

import random
import unicodedata
from collections import Counter

import numpy as np
import pytest

from manyheads import corpora
from manyheads.decode.hypotheses import loop_length
from manyheads.tasks.seq2seq.translation_parts import Part, PartReader
from manyheads.tasks.seq2seq.translation_search import _RANKS, Confidence
from manyheads.text.markup import line_layout
from manyheads.text.markup.copyable_spans import copyable_spans, mask
from manyheads.text.markup.line_layout import content_spans
from manyheads.text.tokens import sentence_splitting
from manyheads.text.tokens.seen_words import SeenWords, words_of
from manyheads.text.tokens.sentence_splitting import split_sentences
from manyheads.text.tokens.text_profile import TextProfile
from manyheads.text.tokens.tokenizer import Tokenizer
from manyheads.text.tokens.words import is_blank

from tasks.makers import TOKENIZERS

PIECES = [
    *("cat", "Dog", "a", "iv", "x", "Mr", "3", "12", "猫", "睡觉", "don't", "'s", "é", "e\u0301", "Ａ", "²", "ª"),
    *(" ", "  ", "\t", "\n", "\r\n", "\u3000", "\u00a0", "\u2028", "\u200b", "\x85", "\x1c", "\u0301", "\ufeff"),
    *(".", "!", "?", "…", "。", "！", ")", "(", "]", '"', "”", "“", "-", "* ", "•", "> ", "# ", "1. ", "a) ", "iv) "),
    *("`x`", "<b>", "https://a.b/c", "{n}", "5 %"),
]


def texts() -> list[str]:
    rng = random.Random(3)
    made = ["".join(rng.choices(PIECES, k=rng.randint(0, 9))) for _ in range(4000)]
    return [*made, *(side for pair in corpora.pairs("en", "zh", "test", 200, 1) for side in pair)]


TEXTS = texts()


def slow_split(text: str) -> list[tuple[int, int]]:
    ends = [end for end in sentence_splitting._ends(text, "") if end < len(text)]
    protected = [*sentence_splitting.copyable_spans(text), *sentence_splitting._enclosed(text)]
    return list(sentence_splitting._spans(text, sentence_splitting._inside(protected, ends) if ends else ()))


def test_texts_of_one_sentence() -> None:
    found = [split_sentences(text) for text in TEXTS]
    assert found == [slow_split(text) for text in TEXTS]
    assert {len(spans) for spans in found} >= {0, 1, 2}


def test_texts_of_one_line() -> None:
    for language in ("", "de"):
        found = [content_spans(text, language) for text in TEXTS]
        assert found == [line_layout._content_spans(text, language) for text in TEXTS]
        assert {len(spans) for spans in found} >= {0, 1, 2}


@pytest.mark.parametrize("is_known", [True, False])
def test_texts_without_anything_to_copy(is_known: bool) -> None:
    profile = TextProfile.of(TEXTS) if is_known else None
    reader = PartReader(TOKENIZERS["bpe"], 40, profile, "en")
    n_upper = 0
    for text in [*TEXTS, *map(str.upper, TEXTS)]:
        source = text if profile is None else profile.normalize(text)
        if copyable_spans(source):
            continue
        masked = mask(source, TOKENIZERS["bpe"].placeholders.assign(source)).text
        is_upper = profile is not None and profile.needs_lower(masked)
        if profile is not None and is_upper:
            masked, n_upper = profile.sentence_case(masked), n_upper + 1
        assert reader.whole(text) == Part(0, len(text), masked, is_upper)
    assert bool(n_upper) == is_known


def test_blank_texts() -> None:
    kinds = ("Cc", "Mn", "Me", "Mc", "Cf")
    for text in TEXTS:
        assert is_blank(text) == all(one.isspace() or unicodedata.category(one) in kinds for one in text)


def test_unseen_words() -> None:
    seen = SeenWords.of(TEXTS[::2])
    assert seen is not None
    for _ in range(2):  # the second time, from the cache
        for text in TEXTS:
            new: dict[str, str] = {}
            for word in words_of(text):
                if word not in seen:
                    new.setdefault(word.casefold(), word)
            assert seen.unseen(text) == list(new.values())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_many_rows_are_decoded_as_each_alone(name: str) -> None:
    tokenizer: Tokenizer = TOKENIZERS[name]
    rows = [[], *(tokenizer.encode(text) for text in TEXTS[:1500] if "\x1c" not in text), []]
    assert len(rows) > 500
    assert tokenizer.decode_batch(map(tuple, rows)) == [tokenizer.decode(row) for row in rows]


def test_confidences_of_many_translations() -> None:
    rng = random.Random(5)
    confidence = Confidence.fit([-rng.random() for _ in range(300)], [rng.random() * 100 for _ in range(300)])
    assert confidence is not None
    means = [-1.5 * rng.random() for _ in range(1000)] + [0.0, -9.0]
    expected = [float(np.interp(mean, confidence.quantiles, _RANKS)) for mean in means]
    assert confidence.of_all(means) == [confidence.of(mean) for mean in means] == expected


def test_ids_without_a_loop() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        ids = rng.choices(range(rng.choice((3, 6, 40))), k=rng.randint(0, 16))
        has_four = max(Counter(ids).values(), default=0) >= 4
        assert has_four or loop_length(ids) == 0
        runs = [ids[i : i + 4] == [ids[i]] * 4 for i in range(len(ids) - 3)]
        assert not any(runs) or loop_length(ids) >= 4
