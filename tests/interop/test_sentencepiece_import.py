"""SentencePiece models of other people: the ids of the library itself, and Marian's two models with one vocabulary."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers

from manyheads.errors import BundleError
from manyheads.interop import import_huggingface
from manyheads.interop.sentencepiece_import import Pieces

ENGLISH = ["the old man the boat", "two cats are sleeping in the garden", "she likes music, tea and long walks."] * 30
GERMAN = ["der alte mann das boot", "zwei katzen schlafen im garten", "sie mag musik, tee und lange wege."] * 30
HOSTILE = ["", " ", "  a  b ", "ﬁne Ⅷ ①", "日本語", "e\u0301 é", "\t tab", "a\u200bb", "😀 x", "A" * 50, "x\u00a0y"]


def train(lines: list[str], kind: str, **options: Any) -> bytes:
    model = io.BytesIO()
    size = 330 if options else 40 if kind == "bpe" else 400
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, model_type=kind,
        minloglevel=2, hard_vocab_limit=False, **options,
    )  # fmt: skip
    return model.getvalue()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("unigram", {}), ("bpe", {}), ("bpe", {"byte_fallback": True}), ("unigram", {"byte_fallback": True})],
)
def test_ids_are_those_of_sentencepiece(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    blob = train(ENGLISH, kind, **options)
    (tmp_path / "x.model").write_bytes(blob)
    library = sentencepiece.SentencePieceProcessor(model_proto=blob)
    own = tokenizers.Tokenizer.from_str(json.dumps(Pieces.read(tmp_path / "x.model").tokenizer()))
    for text in (*ENGLISH[:3], *GERMAN[:3], *HOSTILE):
        assert own.encode(text).ids == library.encode(text), text


@pytest.mark.parametrize("content", [b"", b"\x0a\xff", b"\x0a\x03\x0a\x01", b"not a model"])
def test_other_files_are_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.model").write_bytes(content)
    with pytest.raises(BundleError, match=r"^.*x\.model is not a SentencePiece model"):
        Pieces.read(tmp_path / "x.model")


def test_marian_reads_with_one_model_and_writes_with_another(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    source, target = train(ENGLISH, "unigram"), train(GERMAN, "unigram")
    pieces = ["</s>", "<unk>"]
    for blob in (source, target):
        library = sentencepiece.SentencePieceProcessor(model_proto=blob)
        pieces += [library.id_to_piece(number) for number in range(library.vocab_size())]
    pieces = [piece for piece in dict.fromkeys(pieces) if piece != "<s>"]
    vocab = {piece: number for number, piece in enumerate([*pieces, ">>de<<", "<pad>"])}
    config = transformers.MarianConfig(
        vocab_size=len(vocab), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=32,
        pad_token_id=vocab["<pad>"], eos_token_id=0, decoder_start_token_id=vocab["<pad>"], activation_function="swish",
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(tmp_path)
    for name, blob in (("source.spm", source), ("target.spm", target)):
        (tmp_path / name).write_bytes(blob)
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, **names}), encoding="utf-8")
    task: Any = import_huggingface(tmp_path).task
    theirs = task.tokenizer.numbering.theirs
    sides = [sentencepiece.SentencePieceProcessor(model_proto=blob) for blob in (source, target)]
    for text in (ENGLISH[0], GERMAN[0], "tea garten xyz"):
        for own, library in zip((task.tokenizer, task.tokenizer.target), sides, strict=True):
            expected = [vocab.get(piece, 1) for piece in library.encode(text, out_type=str)]
            assert [theirs[number] for number in own.encode(text)] == expected
    german = GERMAN[1]
    assert task.tokenizer.decode(task.tokenizer.target.encode(german)) == german
    assert task.tokenizer.id_to_token(task.tokenizer.encode(">>de<< tea")[0]) == ">>de<<"
    reloaded = type(task.tokenizer).from_bytes(task.tokenizer.to_bytes())
    assert reloaded.target.encode(german) == task.tokenizer.target.encode(german)
