"""The bytes of token ids, and the ids with which a text can go on."""

from manyheads.text.tokens.surfaces import Surfaces
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings


def test_ids_that_begin_or_exceed_a_text() -> None:
    surfaces = Surfaces([b"", b"a", b"ab", b"abc", b"b", b"a", b"c"], [5, 6])
    assert surfaces.beginning(b"abx") == [1, 2]
    assert surfaces.exceeding(b"ab") == [3]
    assert surfaces.beginning(b"cx") == [6], "a byte token only where no other token fits"
    assert surfaces.beginning(b"zx") == []
    assert surfaces.exceeding(b"z") == []


def test_surfaces_of_a_text_are_the_text() -> None:
    lines = ["Die Katze schläft.", "那只小猫在睡觉。"] * 50
    for kind in ("unigram", "bpe", "character"):
        tokenizer = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=340, placeholders=3))  # type: ignore[arg-type]
        surfaces = tokenizer.surfaces
        assert surfaces.of[:4] == (b"",) * 4
        assert surfaces.has_prefix == (kind != "character")
        for text in ("Die 猫 😀▁x.", "schläft"):
            joined = b"".join(surfaces.of[one] for one in tokenizer.encode(text))
            assert joined == (" " * surfaces.has_prefix + text).encode()
        assert [surfaces.of[one] for one in tokenizer.placeholder_ids] == [Surfaces.placeholder(n) for n in range(3)]
