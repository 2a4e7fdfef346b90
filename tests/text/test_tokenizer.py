import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads import corpora
from manyheads.errors import BundleError, DataError, RecipeError
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Token, Tokenizer, TokenizerSettings
from manyheads.text.tokens.tokenizer_training import _chunks, _rows, _sample

ENGLISH = re.split(" ", "the a small big red dog cat child tree runs sleeps sees under over near house café 1999 24")
CHINESE = re.split(" ", "一只 小 大 红 狗 猫 孩子 树 跑 睡觉 看见 在 下面 房子 旁边 ， 。 ！ （ ）")


def some_lines(n: int = 400) -> list[str]:
    chance = random.Random(7)
    english = [" ".join(chance.choices(ENGLISH, k=chance.randint(3, 12))) for _ in range(n)]
    chinese = ["".join(chance.choices(CHINESE, k=chance.randint(3, 12))) for _ in range(n)]
    return english + chinese


LINES = some_lines()
UNIGRAM = Tokenizer.train(LINES, TokenizerSettings(kind="unigram", vocab_size=400))
BPE = Tokenizer.train(LINES, TokenizerSettings(kind="bpe", vocab_size=400))
CHARACTER = Tokenizer.train(LINES, TokenizerSettings(kind="character", vocab_size=400))
both_kinds = pytest.mark.parametrize("tokenizer", [UNIGRAM, BPE], ids=["unigram", "bpe"])
every_kind = pytest.mark.parametrize("tokenizer", [UNIGRAM, BPE, CHARACTER], ids=["unigram", "bpe", "character"])

# Everything that has tripped tokenizers before, mixed with all of Unicode and with words that are in the vocabulary.
AWKWARD = [
    *("▁", "▅", "⁇", " ⁇ ", "<s>", "</s>", "<pad>", "<unk>", "<0x41>", "<0xE2>", " ", "  ", "\t", "\0", "\r", "\x85"),
    *(
        "\u2028",
        "\u3000",
        "\ufeff",
        "\ufffd",
        "\u200b",
        "\xa0",
        "👨‍👩‍👧",
        "é",
        "e\u0301",
        "ﬁ",
        "，",
        "（",
        "\U0010ffff",
        "\x1f",
    ),
]
texts = st.lists(st.text(max_size=4) | st.sampled_from(AWKWARD + ENGLISH + CHINESE), max_size=12).map("".join)


@every_kind
@settings(max_examples=250, deadline=None)
@given(text=texts)
@example(text="▁")
@example(text="▁ ▁▁ x▁")
@example(text="  two  spaces  ")
@example(text="a line\nand another\r\n")
def test_decoding_restores_every_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert all(0 <= i < tokenizer.vocab_size for i in ids)


@every_kind
@settings(max_examples=200, deadline=None)
@given(text=texts)
@example(text="▁a")
def test_tokens_cover_the_text_in_order(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.tokenize(text)
    assert [token.id for token in tokens] == tokenizer.encode(text)
    position = 0
    for token in tokens:
        assert token.start <= position <= token.end  # no gap; only the bytes of one character share a span
        shown = text[token.start : token.end]
        if token.text.startswith("<0x"):
            assert len(shown) == 1 and int(token.text[3:5], 16) in shown.encode()
        else:
            assert shown.replace(" ", "▁") == token.text[len(token.text) - len(shown) :]
        position = token.end
    assert position == len(text)


def test_token_spans() -> None:
    words = Tokenizer.train(["ab cd"] * 50, TokenizerSettings(kind="bpe", vocab_size=300))
    spans = [(token.text, token.start, token.end) for token in words.tokenize("ab 😀▁ cd")]
    assert spans == [
        ("▁ab", 0, 2),
        ("▁", 2, 3),
        *[(f"<0x{byte:02X}>", 3, 4) for byte in "😀".encode()],
        *[(f"<0x{byte:02X}>", 4, 5) for byte in "▁".encode()],
        ("▁cd", 5, 8),
    ]
    assert words.tokenize("😀")[0] == Token("▁", words.encode(" ")[0], 0, 0)


@both_kinds
def test_batches_equal_single_texts(tokenizer: Tokenizer) -> None:
    many = [*LINES, "▁ character ▁", "", *LINES]  # enough to use threads
    rows = tokenizer.encode_batch(many)
    assert rows == [tokenizer.encode(text) for text in many]
    assert tokenizer.decode_batch(rows) == many
    assert tokenizer.encode_batch([]) == tokenizer.decode_batch([]) == []


def test_models_of_0_1_0_give_the_same_tokens() -> None:
    folder = Path(__file__).parent / "tokenizers_0_1_0"
    stored = json.loads((folder / "tokens.json").read_text("utf-8"))
    texts = stored.pop("texts")  # with ▁, spaces and bytes, and two with equally probable splits
    for name, rows in stored.items():
        tokenizer = Tokenizer.from_file(folder / f"{name}.model")
        assert tokenizer.encode_batch(texts) == rows, name
        assert [tokenizer.encode_continuation(f"a▁{text}") for text in texts] == [
            [*tokenizer.encode_continuation("a▁"), *tokenizer.encode_continuation(text)] for text in texts
        ], name


def test_decode_accepts_any_ids() -> None:
    ids = UNIGRAM.encode("the cat")
    assert UNIGRAM.decode([BOS, *ids, EOS, PAD, PAD]) == "the cat"
    assert UNIGRAM.decode(iter(ids)) == "the cat"
    assert UNIGRAM.decode(UNIGRAM.encode("😀")[:2]) == "\ufffd"


def test_unpaired_surrogate_raises() -> None:
    with pytest.raises(DataError, match=r"Text 2 contains an unpaired surrogate \(U\+D83D at character 3\)"):
        UNIGRAM.encode_batch(["ok", "ab\ud83d"])
    with pytest.raises(DataError, match="Line 2 contains an unpaired surrogate"):
        Tokenizer.train(["ok", "\udc80"], TokenizerSettings())


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
class TestTraining:
    def test_equal_input_gives_equal_bytes(self, kind: str) -> None:
        chosen = TokenizerSettings(kind=kind, vocab_size=350, sample_bytes=100_000)  # type: ignore[arg-type]
        lines = [f"{line} {number}" for number, line in enumerate(some_lines(2000))]
        assert sum(len(line.encode()) for line in lines) > chosen.sample_bytes  # so that the sample is at work
        first, second, other = (Tokenizer.train(iter(lines), chosen, seed).to_bytes() for seed in (3, 3, 4))
        assert first == second
        assert first != other

    def test_a_large_sample_gives_as_few_tokens_word_by_word(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        chosen = TokenizerSettings(kind=kind, vocab_size=800)  # type: ignore[arg-type]
        train, held_out = (
            [text for pair in corpora.pairs("en", "zh", split, count) for text in pair]
            for split, count in (("train", 4000), ("valid", 200))
        )
        lines = Tokenizer.train(train, chosen)
        monkeypatch.setattr("manyheads.text.tokens.tokenizer_training._MAX_SIZE_OF_LINES", 1000)
        words = Tokenizer.train(train, chosen)
        assert words.to_bytes() == Tokenizer.train(train, chosen).to_bytes()
        n_tokens = [sum(map(len, one.encode_batch(held_out))) for one in (words, lines)]
        assert n_tokens[0] <= 1.01 * n_tokens[1]
        assert words.decode(words.encode(" a  b 你好\t")) == " a  b 你好\t"

    def test_rows_of_a_large_sample_are_words_in_changing_order(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sample = [b"the cat sees the dog"] * 60 + [b"the tree"]
        whole = [row.split(b"\t") for row in _rows(sample, kind)]
        assert {text for text, _ in whole} == set(sample)
        monkeypatch.setattr("manyheads.text.tokens.tokenizer_training._MAX_SIZE_OF_LINES", 1000)
        rows = [(text, int(count)) for text, count in (row.split(b"\t") for row in _rows(sample, kind))]
        counts: Counter[bytes] = Counter()
        for text, count in rows:
            counts[text] += count
        assert counts == {b"the": 121, b"cat": 60, b"sees": 60, b"dog": 60, b"tree": 1}
        turns = [tuple(text for text, _ in rows[start : start + 4]) for start in range(5, len(rows), 4)]
        assert len(turns) == 39  # after the first turn, which has "tree", 40 in all
        assert len(set(turns)) > 5
        assert b"the tree" in {row.split(b"\t")[0] for row in _rows(sample, "character")}

    def test_small_text_yields_smaller_vocabulary(self, kind: str) -> None:
        tiny = Tokenizer.train(["hello world"], TokenizerSettings(kind=kind, vocab_size=8000))  # type: ignore[arg-type]
        assert 260 < tiny.vocab_size < 300
        assert tiny.decode(tiny.encode("hello 你好")) == "hello 你好"

    def test_rare_characters_become_bytes_if_the_vocabulary_is_small(self, kind: str) -> None:
        characters = [chr(0x4E00 + n) for n in range(1000) for _ in range(1 + (1000 - n) // 50)]
        random.Random(1).shuffle(characters)
        lines = ["".join(characters[n : n + 20]) for n in range(0, len(characters), 20)]
        tight = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=400))  # type: ignore[arg-type]
        assert 390 <= tight.vocab_size <= 400
        assert len(tight.encode("a\u4e00b")) == len(tight.encode("ab")) + 1  # the most frequent: one token
        assert len(tight.encode("a\u51e7b")) == len(tight.encode("ab")) + 3  # one of the rarest: three bytes
        assert tight.decode(tight.encode("a \u51e7 b")) == "a \u51e7 b"

    def test_long_lines_are_not_dropped(self, kind: str) -> None:
        # More than 65,535 characters without a space: unsplit, bpe would abort the process.
        lines = ["你好吗" * 30_000, "word " * 3_000, "short"]
        trained = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=400))  # type: ignore[arg-type]
        for text in ("你", "好", "word"):
            assert not any(token.text.startswith("<0x") for token in trained.tokenize(text)), text

    def test_repeated_lines_are_fast(self, kind: str) -> None:
        # Two lines: the unigram trainer of SentencePiece 0.2.3 learns no word that the same character always follows.
        lines = ["Thank you.", "Thank, you."] * 4000 + LINES
        begun = time.monotonic()
        trained = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=500))  # type: ignore[arg-type]
        assert time.monotonic() - begun < 10  # unigram took 150 s before repeats were counted
        assert [token.text for token in trained.tokenize("Thank")] == ["▁Thank"]  # and it was still trained from

    @pytest.mark.parametrize("awkward", ["▅", "▁", "\0", "\t", "<s>", "<0x41>", "\n"])
    def test_lines_with_unusual_characters_are_not_dropped(self, kind: str, awkward: str) -> None:
        lines = [f"{awkward} qqq {awkward}"] * 20 + ["other words"] * 20
        trained = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=300))  # type: ignore[arg-type]
        assert not any(token.text.startswith("<0x") for token in trained.tokenize("q"))
        assert Tokenizer.train([awkward * 3 + "x"], TokenizerSettings(kind=kind)).encode(awkward)  # type: ignore[arg-type]

    @pytest.mark.parametrize("lines", [[], [""], ["", "  ", "\t"]])
    def test_no_text_raises(self, kind: str, lines: list[str]) -> None:
        with pytest.raises(DataError, match="no text to train a tokenizer on"):
            Tokenizer.train(lines, TokenizerSettings(kind=kind))  # type: ignore[arg-type]


def test_numbers_are_split_into_digits_and_full_width_characters_survive() -> None:
    assert [token.text for token in UNIGRAM.tokenize("1999")][-4:] == ["1", "9", "9", "9"]
    assert UNIGRAM.decode(UNIGRAM.encode("，。！（１２）")) == "，。！（１２）"


def test_training_and_failing_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    code = """if True:
        from manyheads.errors import BundleError
        from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings
        for blob in (b"", b"junk", b"\\x12\\x00"):
            try:
                Tokenizer.from_bytes(blob)
            except BundleError:
                pass
        trained = Tokenizer.train(["some text"], TokenizerSettings())
        trained.sample_batch(["some text"], 0.1, seed=1)
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    assert capfd.readouterr() == ("", "")


class TestSample:
    def test_small_text_is_kept_whole(self) -> None:
        assert _sample(["a", "bc", "a"], 4, random.Random(1)) == [b"a", b"bc", b"a"]

    def test_sample_is_bounded_uniform_and_streamed(self) -> None:
        lines = [f"{n:06d}" for n in range(20_000)]
        kept = _sample(iter(lines), 12_000, random.Random(1))
        assert 0.85 * 12_000 < sum(map(len, kept)) <= 12_000
        assert kept == sorted(kept)
        halves = sum(int(line) < 10_000 for line in kept) / len(kept)
        assert 0.45 < halves < 0.55

    def test_chunks_are_lossless(self) -> None:
        words = ("word " * 5000).strip()
        assert " ".join(_chunks(words)) == words
        assert max(map(len, _chunks(words))) <= 1000
        assert "".join(_chunks("你" * 2500)) == "你" * 2500
        assert list(_chunks("")) == [""]


STRENGTH = 0.3


@both_kinds
class TestSampling:
    def test_sampling_is_deterministic(self, tokenizer: Tokenizer) -> None:
        first = tokenizer.sample_batch(LINES, STRENGTH, seed=1)
        tokenizer.sample_batch(LINES[:5], STRENGTH, seed=9)
        assert tokenizer.sample_batch(LINES, STRENGTH, seed=1) == first
        assert tokenizer.sample_batch(LINES, STRENGTH, seed=2) != first
        assert tokenizer.encode_batch(LINES) != first

    @pytest.mark.parametrize("seed", [0, -1, 2**32 - 1, 2**32, 2**70])
    def test_any_seed_is_accepted(self, tokenizer: Tokenizer, seed: int) -> None:
        first, second = (tokenizer.sample_batch(LINES, STRENGTH, seed) for _ in range(2))
        assert first == second

    def test_sampling_is_deterministic_with_threads(self, tokenizer: Tokenizer) -> None:
        expected = {seed: tokenizer.sample_batch(LINES, STRENGTH, seed) for seed in (1, 2)}
        together = threading.Barrier(2)

        def sample(seed: int) -> list[list[list[int]]]:
            together.wait()
            return [tokenizer.sample_batch(LINES, STRENGTH, seed) for _ in range(5)]

        with ThreadPoolExecutor(2) as pool:
            for seed, found in zip((1, 2), pool.map(sample, (1, 2)), strict=True):
                assert all(rows == expected[seed] for rows in found)

    def test_sampled_ids_decode_to_the_same_text(self, tokenizer: Tokenizer) -> None:
        awkward = [*LINES[::20], *AWKWARD, "▁▁ a▁"]
        rows = tokenizer.sample_batch(awkward, STRENGTH, seed=5)
        assert tokenizer.decode_batch(rows) == awkward

    def test_strength_zero_is_encode_batch(self, tokenizer: Tokenizer) -> None:
        assert tokenizer.sample_batch(LINES, 0.0, seed=1) == tokenizer.encode_batch(LINES)


class TestBytes:
    @both_kinds
    def test_tokenizer_round_trips_through_a_file(self, tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
        (tmp_path / "tokenizer.model").write_bytes(tokenizer.to_bytes())
        restored = Tokenizer.from_file(tmp_path / "tokenizer.model")
        assert restored.to_bytes() == tokenizer.to_bytes()
        assert restored.encode_batch(LINES) == tokenizer.encode_batch(LINES)

    def test_sentencepiece_gives_the_same_ids(self) -> None:
        plain = sentencepiece.SentencePieceProcessor(model_proto=UNIGRAM.to_bytes())
        assert plain.encode(LINES) == UNIGRAM.encode_batch(LINES)

    @pytest.mark.parametrize("keep", [0, 1, 100, 0.5, -1, -40])
    def test_damaged_file_raises(self, keep: float) -> None:
        whole = UNIGRAM.to_bytes()
        cut = int(len(whole) * keep) if keep == 0.5 else int(keep)
        with pytest.raises(BundleError, match=r"^tokenizer.model is .*\.$"):
            Tokenizer.from_bytes(whole[:cut])

    def test_token_that_is_not_utf8_raises(self) -> None:
        with pytest.raises(BundleError, match=r"^tokenizer.model is damaged"):
            Tokenizer.from_bytes(UNIGRAM.to_bytes().replace(b"<0x00>", b"<0x\xbe0>"))

    @pytest.mark.parametrize(
        "options", [{}, {"byte_fallback": True}, {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}]
    )
    def test_model_of_another_tool_raises(self, tmp_path, options: dict[str, object]) -> None:  # type: ignore[no-untyped-def]
        path = tmp_path / "foreign.model"
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(LINES), model_writer=file, vocab_size=400, minloglevel=3, hard_vocab_limit=False,
                **options,
            )  # fmt: skip
        with pytest.raises(BundleError, match=r"foreign\.model is a SentencePiece model that manyheads did not train"):
            Tokenizer.from_file(path)

    def test_missing_file_raises(self, tmp_path) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(BundleError, match=r"none\.model: the tokenizer cannot be read \(No such file"):
            Tokenizer.from_file(tmp_path / "none.model")


def test_settings_report_all_faults_together() -> None:
    with pytest.raises(RecipeError) as caught:
        TokenizerSettings(vocab_size=100, sampling=1.5, sample_bytes=1)
    message = str(caught.value)
    assert "tokenizer.vocab_size = 100 must be at least 300" in message
    assert "tokenizer.sampling = 1.5 must be at least 0 and at most 1." in message
    assert "tokenizer.sample_bytes = 1 must be at least 100,000" in message


def test_character_tokens_do_not_depend_on_position() -> None:
    text = "the  cat\n\n 红狗\n"
    tokens = CHARACTER.tokenize(text)
    known = [token for token in tokens if not token.text.startswith("<0x")]
    assert [text[token.start : token.end].replace(" ", "▁") for token in known] == [token.text for token in known]
    assert CHARACTER.encode("cat") == CHARACTER.encode("a cat")[2:]
    assert {token.end - token.start for token in tokens} == {1}


def test_small_character_vocabulary_keeps_the_space() -> None:
    """Without spaces in the text, that would be the rarest of all."""
    lines = ["".join(chr(0x4E00 + (7 * number + position) % 900) for position in range(20)) for number in range(200)]
    tokenizer = Tokenizer.train(lines, TokenizerSettings(kind="character", vocab_size=400))
    assert tokenizer.vocab_size <= 400
    assert tokenizer.decode(tokenizer.encode(f"a {lines[0]} b")) == f"a {lines[0]} b"


def test_character_kind_rejects_sampling() -> None:
    with pytest.raises(
        RecipeError, match=r'tokenizer\.sampling = 0\.1 has no effect with tokenizer\.kind = "character"'
    ):
        TokenizerSettings(kind="character", sampling=0.1)


def test_line_ends_are_learned() -> None:
    """A language model has to write them."""
    lines = [" ".join(ENGLISH[:6]) + "\n\n" + " ".join(ENGLISH[6:12]) + "\n"] * 50
    for kind in ("unigram", "bpe", "character"):
        tokenizer = Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=400))
        assert not any(token.text.startswith("<0x") for token in tokenizer.tokenize("the\n\ncat\n"))


@every_kind
@settings(max_examples=150, deadline=None)
@given(before=texts, after=texts)
@example(before="a", after=" b")
@example(before="", after="b")
def test_decode_continuation(tokenizer: Tokenizer, before: str, after: str) -> None:
    read = tokenizer.encode(before)
    written = tokenizer.encode_continuation(after) if read else tokenizer.encode(after)
    assert tokenizer.decode(read + written) == before + after
    assert tokenizer.decode_continuation(read, written) == after


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_split_chinese_characters_are_single_tokens(kind: Literal["unigram", "bpe"]) -> None:
    lines = ["我爱水课 and cats", "我爱水课 and dogs", "水课很水, cats and dogs"] * 50
    joined, apart = (
        Tokenizer.train(lines, TokenizerSettings(kind=kind, vocab_size=340, chinese_characters=chinese_characters))
        for chinese_characters in ("joined", "split")
    )

    def longest(tokenizer: Tokenizer) -> int:
        names = [tokenizer.id_to_token(number).strip("▁") for number in range(tokenizer.vocab_size)]
        return max(len(name) for name in names if any("\u4e00" <= character <= "\u9fff" for character in name))

    assert longest(joined) > 1
    assert longest(apart) == 1
    assert apart.decode(apart.encode("水课 and cats我爱")) == "水课 and cats我爱"
    assert "▁cats" in [apart.id_to_token(number) for number in apart.encode("and cats")]
