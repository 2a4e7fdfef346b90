"""Shortlists: learnt by the heads that align, stored with what they cost, refused where they cost too much."""

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
from manyheads.decode.native import library
from manyheads.errors import BundleError, DataError, EngineError, LensError, RecipeError
from manyheads.lens.aligner import Aligner, choose_aligner
from manyheads.lens.row_sample import train_rows
from manyheads.storage import write_manifest
from manyheads.tasks import Seq2Seq
from manyheads.text.readers import Row
from manyheads.text.tokenizer import EOS

from lens.makers import task_of

ROWS: list[Row] = [tuple(pair) for pair in corpora.pairs("en", "zh", "train", 40)]
FEW = ShortlistSettings(words=5, frequent=10)


def _needs_a_compiler() -> None:
    try:
        library.find_compiler()
    except EngineError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("variant", "shift"), [("align weights written", 0), ("align norms read", -1)])
def test_a_token_brings_what_is_written_where_it_is_looked_at(
    untrained: Bundle, monkeypatch: pytest.MonkeyPatch, variant: str, shift: int
) -> None:
    """Heads that look straight at the token that is meant: each brings what stands in its own place, no more."""

    def diagonal(aligner: Aligner, source: Tensor, read: Tensor) -> Tensor:
        return torch.eye(source.size(1))[(torch.arange(read.size(1)) + shift).clamp(0, source.size(1) - 1)].expand(
            len(source), -1, -1
        )

    monkeypatch.setattr(shortlisting, "_strengths", diagonal)
    task = untrained.task
    assert isinstance(task, Seq2Seq)
    aligner = Aligner(task, (), variant, 1.0, "gold", 1)
    rows: list[Row] = [("cat dog", "dog bird")] * 2 + [("cat", "bird")]
    tokens = [task.tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]
    links = {(a, b) for source, target in zip(*tokens, strict=True) for a, b in zip(source, target, strict=False)}
    found = learn_shortlist(aligner, rows, ShortlistSettings(words=5, frequent=0))
    assert found.always.tolist() == [EOS]
    for token in {a for a, _ in links}:
        own = found.token_ids[found.starts[token] : found.starts[token + 1]].tolist()
        assert set(own) == {token, *(b for a, b in links if a == token)}
    one = learn_shortlist(aligner, rows, ShortlistSettings(words=1, frequent=0))
    first, often = tokens[0][0][0], tokens[1][0][0]
    assert one.token_ids[one.starts[first] : one.starts[first + 1]].tolist() == [first, often]  # twice, not once
    frequent = learn_shortlist(aligner, rows, ShortlistSettings(words=5, frequent=1))
    assert len(frequent.always) == 2


def test_what_is_stored_is_what_was_measured(bundle_folder: Path, tmp_path: Path) -> None:
    _needs_a_compiler()
    loaded = load(bundle_folder)
    # A model that knows nothing has no BLEU to lose, so that whatever its list, it is kept.
    short, found = add_shortlist(loaded, "bundle", ROWS, ROWS[:12], FEW)
    assert short.shortlist is not None
    assert found.engine == "native"
    assert 11 <= found.mean_tokens < found.vocab_size / 4
    assert found.alone.n_sentences == found.together.n_sentences == 12
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
    assert not set(again.task.tokenizer.encode(whole)) <= listed  # so the list does make a difference here
    assert again.predict([text])[0] != whole
    with pytest.raises(BundleError, match="has a shortlist already"):
        add_shortlist(again, "short", ROWS, ROWS[:12], FEW)
    small, _ = quantize(again, ROWS[:12])
    assert small.shortlist is None  # its cost was measured with other weights


def test_what_costs_too_much_is_refused_with_the_figure(untrained: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    _needs_a_compiler()

    def costly(*rest: object, at_once: int, clock: object) -> TradeOff:
        return TradeOff(
            12, before=40.0, after=39.5 if at_once == 1 else 40.0, low=-0.9, high=-0.1, speedup=2.0, identical=0.8
        )

    monkeypatch.setattr(shortlisting, "measure_trade_off", costly)
    with pytest.raises(BundleError, match=r"cost 0\.50 BLEU \(40\.00 → 39\.50 on 12 sentences\).*--words 10"):
        add_shortlist(untrained, "bundle", ROWS, ROWS[:12], FEW)


def test_a_list_that_is_damaged_or_not_there_is_told(untrained: Bundle, tmp_path: Path) -> None:
    assert isinstance(untrained.task, Seq2Seq)
    aligner = choose_aligner(untrained, "bundle")
    short = replace(untrained, shortlist=learn_shortlist(aligner, ROWS, FEW), shortlist_cost={})
    short.save(tmp_path / "short")
    file = tmp_path / "short" / "shortlist.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"\x7f")
    with pytest.raises(BundleError, match=r"shortlist\.safetensors is damaged"):
        load(tmp_path / "short")
    write_manifest(tmp_path / "short")  # whoever made it so meant it so: then the table itself is judged
    with pytest.raises(BundleError, match=r"shortlist\.safetensors: The shortlist points beyond"):
        load(tmp_path / "short")
    file.unlink()
    write_manifest(tmp_path / "short")
    with pytest.raises(BundleError, match=r"does not list shortlist\.safetensors"):
        load(tmp_path / "short")


def test_wrong_wishes_are_told(untrained: Bundle) -> None:
    with pytest.raises(RecipeError, match="--words 0 must be at least 1"):
        ShortlistSettings(words=0)
    with pytest.raises(LensError, match="A sample of 0 rows teaches nothing"):
        train_rows(untrained, 0)
    with pytest.raises(DataError, match=r"no-such\.en"):
        train_rows(untrained, 5, [Path("no-such.en"), Path("no-such.zh")])
    with pytest.raises(LensError, match="has no cross-attention"):
        add_shortlist(replace(untrained, task=task_of("language")), "x", ROWS, ROWS, FEW)
    with pytest.raises(DataError, match="None of 1 pairs is short enough"):
        learn_shortlist(choose_aligner(untrained, "x"), [("cat " * 90, "猫")], FEW)


def test_a_sample_is_drawn_from_all_rows(untrained: Bundle) -> None:
    found = train_rows(untrained, 30)
    assert len(found) == len(set(found)) == 30
    assert found == train_rows(untrained, 30)
    everything = train_rows(untrained, 10_000)
    assert set(found) <= set(everything)
    assert max(map(everything.index, found)) > 500  # not the first alone
