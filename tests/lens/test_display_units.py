import pytest

from manyheads.lens.traces.display_units import make_side, sides_of
from manyheads.tasks import ModelInput
from manyheads.text.tokens.tokenizer import BOS, EOS, Token, Tokenizer, TokenizerSettings

TEXT = "我爱水课。 Cats sleep."


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["cats are sleeping here.", "dogs sleep, too.", "我爱你。", "猫在睡觉。"] * 20
    return Tokenizer.train(lines, TokenizerSettings(kind="bpe", vocab_size=330))


def _tokens(tokenizer: Tokenizer, text: str) -> tuple[Token, ...]:
    return (Token("<s>", BOS, 0, 0), *tokenizer.tokenize(text), Token("</s>", EOS, len(text), len(text)))


def test_bytes_are_merged_into_characters(tokenizer: Tokenizer) -> None:
    side = make_side(TEXT, _tokens(tokenizer, TEXT), tokenizer)
    assert any(unit.kind == "byte" for unit in side.tokens)  # 水 and 课 are not in the vocabulary
    assert [unit.text for unit in side.characters] == ["BOS", *"我爱水课。Catssleep.", "EOS"]
    assert [unit.text for unit in side.words] == ["BOS", *"我爱水课。", "Cats", "sleep", ".", "EOS"]


@pytest.mark.parametrize("text", [TEXT, "😀", "مرحبا", "a  b", "", " ", "👩‍👩‍👧 né"])
@pytest.mark.parametrize("name", ["tokens", "characters", "words"])
def test_units_cover_every_token_once(tokenizer: Tokenizer, text: str, name: str) -> None:
    tokens = _tokens(tokenizer, text)
    shares = [0.0] * len(tokens)
    for unit in make_side(text, tokens, tokenizer).units(name):  # type: ignore[arg-type]
        for position, share in unit.parts:
            shares[position] += share
    assert shares == pytest.approx([1.0] * len(tokens))


def test_kinds(tokenizer: Tokenizer) -> None:
    side = make_side("Cats.", _tokens(tokenizer, "Cats."), tokenizer)
    assert [unit.kind for unit in side.words] == ["special", "text", "punctuation", "special"]


def test_written_is_what_follows_each_position(tokenizer: Tokenizer) -> None:
    answer = tuple(tokenizer.tokenize("cats sleep"))
    eos = Token("</s>", EOS, 10, 10)
    model_input = ModelInput("猫睡", "cats sleep", (eos,), (Token("<s>", BOS, 0, 0), *answer), eos)
    sides = sides_of(model_input, tokenizer)
    assert sides.target is not None and sides.written is not None
    assert [unit.text for unit in sides.written.words] == ["cats", "sleep", "EOS"]
    assert [unit.text for unit in sides.target.words] == ["BOS", "cats", "sleep"]
    assert [position for unit in sides.written.tokens for position, _ in unit.parts] == list(range(len(answer) + 1))


def test_an_unknown_next_token_is_a_question_mark(tokenizer: Tokenizer) -> None:
    model_input = ModelInput("cats", "", (), (Token("<s>", BOS, 0, 0), *tokenizer.tokenize("cats")))
    written = sides_of(model_input, tokenizer).written
    assert written is not None and written.tokens[-1].text == "?"
