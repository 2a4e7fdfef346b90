"""The training benchmark: counted FLOP, batches, failed peers, and tables."""

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from manyheads.data import make_batch
from manyheads.model import ModelSettings, Tap, Transformer

SPEED = Path(__file__).parents[2] / "benchmarks" / "speed"


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SPEED))  # of what it imports
    spec = importlib.util.spec_from_file_location("training_benchmark", SPEED / "training.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)  # tests/ has a package `training`, too
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


class IgnoringTap(Tap):
    """Makes attention use the explicit path, whose matrix products can be counted."""

    def receive(self, name: str, value: torch.Tensor) -> None:
        pass


def test_counted_flop_equal_those_of_the_matrix_products(training: ModuleType) -> None:
    size = training.Size(2, 16, 24, 4, 50, 100, steps_per_turn=1, n_turns=1)
    model = Transformer(
        ModelSettings(vocab_size=50, width=16, feed_forward_width=24, n_heads=4, n_encoder_layers=2, n_decoder_layers=2)
    )
    batch = make_batch([np.arange(4, 11)], [np.arange(4, 9)])  # 8 and 6 ids with EOS or BOS: no padding
    with FlopCounterMode(display=False) as counter:
        model(torch.from_numpy(batch.source), torch.from_numpy(batch.target_input), tap=IgnoringTap())
    hidden = 2 * 4 * 16 * (6 * 6 - 6 * 7 // 2)  # products of masked positions are computed here, but not counted
    assert training.count_flop(size, batch) == 3 * (counter.get_total_flops() - hidden)


def test_padding_is_not_counted(training: ModuleType) -> None:
    size = training.SIZES["tiny"]
    short, long = np.arange(4, 7), np.arange(4, 14)
    apart = [make_batch([ids], [ids]) for ids in (short, long)]
    together = make_batch([short, long], [short, long])
    assert training.count_flop(size, together) == sum(training.count_flop(size, batch) for batch in apart)


def test_batches_are_within_budget_with_little_padding(training: ModuleType) -> None:
    batches = training.make_batches(training.drawn_pairs(6000), 1250, 20)
    assert len(batches) == 20
    for batch in batches:
        assert max(batch.source.size, batch.target_output.size) <= 1250
    positions = sum(batch.source.size + batch.target_output.size for batch in batches)
    real = sum(int((batch.source != 0).sum()) + batch.n_tokens for batch in batches)
    assert real / positions > 0.95


def test_failed_import_of_a_peer_is_reported_with_its_last_line(training: ModuleType) -> None:
    peers = sys.modules["peers"]
    with pytest.raises(peers.PeerError, match=r"^ModuleNotFoundError: No module named 'no_such_peer'$"):
        peers._run(sys.executable, "-c", "import no_such_peer")


def test_failed_worker_is_reported_and_removed(training: ModuleType, tmp_path: Path) -> None:
    frame = sys.modules["frame"]
    workers, failed = {"lost": frame.Worker(sys.executable, "no_such_worker.py", tmp_path / "log")}, {}
    frame.ask_or_fail(workers, "lost", {}, failed, lambda answer: pytest.fail("the worker answered"))
    assert not workers
    assert "No such file or directory" in failed["lost"]


def test_readme_without_markers_is_refused(training: ModuleType) -> None:
    draw = sys.modules["draw"]
    assert draw.put_between("a\n<!-- x -->\nold\n<!-- end of x -->\nb", "x", "new\n").split("\n")[2] == "new"
    with pytest.raises(ValueError, match="has no markers <!-- y -->"):
        draw.put_between("nothing", "y", "new\n")


@pytest.mark.proof
def test_whole_benchmark_with_table_and_picture(training: ModuleType) -> None:
    size = training.Size(1, 16, 16, 2, 300, 100, steps_per_turn=1, n_turns=1)
    given = argparse.Namespace(turns=2, data=None, core=None, peers=["torch"], folder=Path("unused"), bfloat16=False)
    records = {"small": training.measure(size, given, {})}
    draw = sys.modules["draw"]
    assert records["small"]["failed"] == {}
    found = draw.TrainingRecord(records["small"])
    assert found.names == ["manyheads", "torch"]
    assert found.times_faster("manyheads", "manyheads") == 1.0
    assert 0 < found.utilization("manyheads") < 1
    assert "| torch nn.Transformer |" in draw.training_table(records)
    assert draw.training_picture(records).count("<rect") == 3  # the background and two bars
