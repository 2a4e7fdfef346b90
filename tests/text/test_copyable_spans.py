"""Copyable spans and their placeholders."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.text.markup.copyable_spans import (
    Placeholders,
    copyable_spans,
    count_copied,
    mask,
    placeholder_symbols,
    restore,
)
from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings

PLACEHOLDERS = Placeholders(tuple(placeholder_symbols(4)))


def spans(text: str) -> list[str]:
    return [text[start:end] for start, end in copyable_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("返回``None``或:py:class:`~a.B`。", ["``None``", ":py:class:`~a.B`"]),
        ("See :ref:`the title <label>`_ or `Title <https://x.org/>`_.", [":ref:`", "<label>`_", "<https://x.org/>`_"]),
        ("Set `x` to %s, %(name)d or %5.2f: 50% of it, 100% sure", ["`x`", "%s", "%(name)d", "%5.2f"]),
        ("Hi {name}, {0!r} and ${HOME}: {}", ["{name}", "{0!r}", "${HOME}", "{}"]),
        (
            "<b>bold</b> &amp; <a href='x'>2 < 3</a> &#8211;",
            ["<b>", "</b>", "&amp;", "<a href='x'>", "</a>", "&#8211;"],
        ),
        (
            "At https://x.org/a_b?c=1, www.y.de/z. 见https://z.cn/x。",
            ["https://x.org/a_b?c=1", "www.y.de/z", "https://z.cn/x"],
        ),
        ("Write to a.b@c.de. |version| ⟦3⟧", ["a.b@c.de", "|version|", "⟦3⟧"]),
        ("my_name, __init__() and _emphasis_ but not a-b", ["my_name", "__init__()"]),
        ("Plain text: nothing, 3.5 % of it.", []),
    ],
)
def test_spans(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


def test_pair_is_masked_where_both_sides_agree() -> None:
    source, target = PLACEHOLDERS.mask_pair("Use ``a`` or ``b``, not ``a``: %s", "``b``？``a``，``c``。")
    first, second = (symbol for symbol in PLACEHOLDERS.symbols if symbol in source)
    assert {source, target} in (
        {f"Use {a} or {b}, not {a}: %s", f"{b}？{a}，``c``。"} for a, b in ((first, second), (second, first))
    )
    assert count_copied("Use ``a`` or ``b``", "``b``和``c``") == 1
    assert Placeholders(()).mask_pair("``a``", "``a``") == ("``a``", "``a``")


def test_every_placeholder_is_used_and_spans_beyond_their_number_stay() -> None:
    assert {symbol for number in range(50) for symbol in PLACEHOLDERS.assign(f"{number} ``a``").values()} == {
        *PLACEHOLDERS.symbols
    }
    text = " ".join(f"``{number}``" for number in range(6))
    assigned = PLACEHOLDERS.assign(text)
    assert list(assigned) == ["``0``", "``1``", "``2``", "``3``"]
    assert mask(text, assigned).text.endswith(" ``4`` ``5``")


def test_placeholders_that_stand_for_nothing_are_removed() -> None:
    assert restore("x ⟦1⟧ y ⟦2⟧", {"``a``": "⟦2⟧"}).text == "x  y ``a``"
    assert restore("x ⟦1⟧", {}).text == "x ⟦1⟧"  # the tokenizer has none: the text is the model's own


def test_rewrite_maps_spans_both_ways() -> None:
    text = "Use ``code`` or ``b`` now"
    assigned = {"``code``": "⟦1⟧", "``b``": "⟦2⟧"}
    masked = mask(text, assigned)
    assert masked.text == "Use ⟦1⟧ or ⟦2⟧ now"
    assert [text[slice(*masked.to_original(*span))] for span in ((0, 3), (4, 7), (8, 10), (11, 14), (15, 18))] == [
        "Use",
        "``code``",
        "or",
        "``b``",
        "now",
    ]
    restored = restore(masked.text, assigned)
    assert restored.text == text
    assert [restored.from_original(*span) for span in ((4, 7), (8, 10), (15, 18))] == [(4, 12), (13, 15), (22, 25)]


@given(st.text(alphabet="`:a<>b@.%s{}_|⟦1⟧ /\n中", max_size=40))
@settings(max_examples=300, deadline=None)
def test_masked_text_is_restored(text: str) -> None:
    assigned = PLACEHOLDERS.assign(text)
    masked = mask(text, assigned).text
    if len(assigned) < 4:  # all spans have a placeholder, those that look like one included
        assert restore(masked, assigned).text == text


@pytest.mark.parametrize(
    "text", ["a" * 10**5 + "<", ":a" * 10**5 + "`", "<" * 10**5, "`a" * 10**5, "a_" * 10**5, "%0" * 10**5]
)
def test_large_texts_end(text: str) -> None:
    copyable_spans(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_placeholder_is_one_token(kind: str) -> None:
    lines = ["Return ``None`` if the cat sleeps.", "The cat sleeps in the house of the dog."] * 20
    settings = TokenizerSettings(kind=kind, vocab_size=320, placeholders=3)  # type: ignore[arg-type]
    tokenizer = Tokenizer.train(lines, settings)
    assert tokenizer.placeholders.symbols == ("⟦1⟧", "⟦2⟧", "⟦3⟧")
    text = "The ⟦2⟧⟦3⟧ cat (⟦1⟧)."
    ids = tokenizer.encode(text)
    names = [tokenizer.id_to_token(token_id) for token_id in ids]
    assert [name for name in names if "⟦" in name] == ["⟦2⟧", "⟦3⟧", "⟦1⟧"]
    assert tokenizer.decode(ids) == text
    assert "`" not in "".join(map(tokenizer.id_to_token, range(tokenizer.vocab_size)))  # no token is spent on code
    without = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=320))  # type: ignore[arg-type]
    assert without.placeholders.symbols == ()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subword_sampling_keeps_placeholders(kind: str) -> None:
    lines = ["The cat sleeps in the house of the dog."] * 20
    tokenizer = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=320, placeholders=3))  # type: ignore[arg-type]
    text = "The ⟦2⟧ cat ▁⟦3⟧⟦1⟧."
    symbols = [tokenizer.encode(symbol)[-1] for symbol in ("⟦2⟧", "⟦3⟧", "⟦1⟧")]
    for seed in range(10):
        [ids] = tokenizer.sample_batch([text], 0.5, seed)
        assert tokenizer.decode(ids) == text
        assert [token_id for token_id in ids if token_id in symbols] == symbols
    if kind == "bpe":  # without dropout
        assert tokenizer.sample_batch([text], 1e-12, 1) == [tokenizer.encode(text)]
