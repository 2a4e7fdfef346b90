"""Shortlists: learned by alignment heads, stored with their cost, refused if the cost is large."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from manyheads import corpora
from manyheads.bundle import Bundle, load
from manyheads.compress import shortlisting
from manyheads.compress.quantization import quantize
from manyheads.compress.shortlisting import ShortlistSettings, add_shortlist, learn_shortlist
from manyheads.compress.trade_off import TradeOff
from manyheads.errors import BundleError, DataError, LensError, RecipeError
from manyheads.lens.aligner import Aligner, choose_aligner
from manyheads.lens.scored_rows import train_rows
from manyheads.metrics import Change
from manyheads.storage import write_manifest
from manyheads.tasks import Seq2Seq
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import EOS

from lens.makers import task_of
from needs import needs_compiler

ROWS: list[Row] = [tuple(pair) for pair in corpora.pairs("en", "zh", "train", 40)]
FEW = ShortlistSettings(words=5, frequent=10)


@pytest.mark.parametrize(("variant", "offset"), [("align weights written", 0), ("align norms read", -1)])
def test_source_tokens_allow_the_aligned_target_tokens(
    untrained: Bundle, monkeypatch: pytest.MonkeyPatch, variant: str, offset: int
) -> None:
    """With perfectly diagonal heads, each source token allows the target tokens at its own position."""

    def diagonal(aligner: Aligner, source: Tensor, read: Tensor) -> Tensor:
        return torch.eye(source.size(1))[(torch.arange(read.size(1)) + offset).clamp(0, source.size(1) - 1)].expand(
            len(source), -1, -1
        )

    monkeypatch.setattr(shortlisting, "_strengths", diagonal)
    task = untrained.task
    assert isinstance(task, Seq2Seq)
    aligner = Aligner(task, (), variant, 1.0, "gold", 1)
    rows: list[Row] = [("cat dog", "dog bird")] * 2 + [("cat", "bird")]
    tokens = [task.tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]
    links = {(a, b) for source, target in zip(*tokens, strict=True) for a, b in zip(source, target, strict=False)}
    shortlist = learn_shortlist(aligner, rows, ShortlistSettings(words=5, frequent=0))
    assert shortlist.always.tolist() == [EOS]
    for token in {a for a, _ in links}:
        own = shortlist.token_ids[shortlist.starts[token] : shortlist.starts[token + 1]].tolist()
        assert set(own) == {token, *(b for a, b in links if a == token)}
    one = learn_shortlist(aligner, rows, ShortlistSettings(words=1, frequent=0))
    first, often = tokens[0][0][0], tokens[1][0][0]
    assert one.token_ids[one.starts[first] : one.starts[first + 1]].tolist() == [first, often]  # twice, not once
    frequent = learn_shortlist(aligner, rows, ShortlistSettings(words=5, frequent=1))
    assert len(frequent.always) == 2


@needs_compiler
def test_stored_shortlist_is_the_measured_one(bundle_folder: Path, tmp_path: Path) -> None:
    loaded = load(bundle_folder)
    # An untrained model has a BLEU of about 0, so any shortlist is accepted.
    compressed = add_shortlist(loaded, "bundle", ROWS, ROWS[:12], FEW)
    short, report = compressed.bundle, compressed.report
    assert short.shortlist is not None
    assert report.engine == "native"
    assert 11 <= report.mean_tokens < report.vocab_size / 4
    assert report.single.change.n_texts == report.batch.change.n_texts == 12
    short.save(tmp_path / "short")
    again = load(tmp_path / "short")
    assert again.shortlist_cost == short.shortlist_cost
    assert json.loads((tmp_path / "short" / "bundle.json").read_text())["shortlist"]["words"] == 5
    assert again.shortlist is not None
    for name, array in short.shortlist.arrays.items():
        assert np.array_equal(again.shortlist.arrays[name], array)
    text = ROWS[0][0]
    assert isinstance(again.task, Seq2Seq)
    ids = again.task.tokenizer.encode(text)
    listed = set(again.shortlist.allowed(np.array([*ids, EOS], dtype=np.int32)).tolist())
    whole = load(tmp_path / "short", use_shortlist=False).predict([text])[0]
    assert whole == loaded.predict([text])[0]
    assert not set(again.task.tokenizer.encode(whole)) <= listed  # so the shortlist matters here
    assert again.predict([text])[0] != whole
    with pytest.raises(BundleError, match="already has a shortlist"):
        add_shortlist(again, "short", ROWS, ROWS[:12], FEW)
    assert quantize(again, ROWS[:12]).bundle.shortlist is None  # its cost was measured with other weights


@needs_compiler
def test_large_cost_is_refused(untrained: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def costly(*rest: object, batch_rows: int, clock: object) -> TradeOff:
        difference = -0.5 if batch_rows == 1 else 0.0
        return TradeOff(Change("BLEU", 40.0 + difference, 40.0, difference, -0.9, -0.1, 12), speedup=2.0)

    monkeypatch.setattr(shortlisting, "measure_trade_off", costly)
    with pytest.raises(
        BundleError, match=r"This shortlist would cost 0\.50 BLEU \(40\.00 → 39\.50 on 12 texts\).*--words 10"
    ):
        add_shortlist(untrained, "bundle", ROWS, ROWS[:12], FEW)


def test_damaged_or_missing_shortlist_is_refused(untrained: Bundle, tmp_path: Path) -> None:
    assert isinstance(untrained.task, Seq2Seq)
    aligner = choose_aligner(untrained, "bundle")
    short = replace(untrained, shortlist=learn_shortlist(aligner, ROWS, FEW), shortlist_cost={})
    short.save(tmp_path / "short")
    file = tmp_path / "short" / "shortlist.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"\x7f")
    with pytest.raises(BundleError, match=r"shortlist\.safetensors is damaged"):
        load(tmp_path / "short")
    write_manifest(tmp_path / "short")  # the checksum is valid now, so the table itself is checked
    with pytest.raises(BundleError, match=r"shortlist\.safetensors: The shortlist has indices out of range"):
        load(tmp_path / "short")
    file.unlink()
    write_manifest(tmp_path / "short")
    with pytest.raises(BundleError, match=r"does not list shortlist\.safetensors"):
        load(tmp_path / "short")


def test_invalid_arguments_are_refused(untrained: Bundle) -> None:
    with pytest.raises(RecipeError, match="--words 0 must be at least 1"):
        ShortlistSettings(words=0)
    with pytest.raises(LensError, match="A sample of 0 rows is too small"):
        train_rows(untrained, 0)
    with pytest.raises(DataError, match=r"no-such\.en"):
        train_rows(untrained, 5, [Path("no-such.en"), Path("no-such.zh")])
    with pytest.raises(LensError, match="has no cross-attention"):
        add_shortlist(replace(untrained, task=task_of("language")), "x", ROWS, ROWS, FEW)
    with pytest.raises(DataError, match="None of the 1 pairs is short enough"):
        learn_shortlist(choose_aligner(untrained, "x"), [("cat " * 90, "猫")], FEW)


def test_train_rows_are_drawn_from_all_rows(untrained: Bundle) -> None:
    sample = train_rows(untrained, 30)
    assert len(sample) == len(set(sample)) == 30
    assert sample == train_rows(untrained, 30)
    everything = train_rows(untrained, 10_000)
    assert set(sample) <= set(everything)
    assert max(map(everything.index, sample)) > 500  # not only the first
