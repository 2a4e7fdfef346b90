"""Training on several processes: the numbers of one, resumption at another world size, and processes that are lost."""

import logging
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.fsdp import FSDPModule

from manyheads.errors import LostProcessError, TrainingError
from manyheads.training import Checkpoints, ProcessGroup, Trainer

from training.doubling import Numbers, make_trainer
from training.ranks import run_ranks

SETTINGS: dict[str, Any] = {"micro_batches": 4, "ema_decay": 0.9, "weight_decay": 0.1}


def trainer_of(group: ProcessGroup, *, is_ddp: bool = False, **settings: Any) -> Trainer[Numbers]:
    trainer = make_trainer(**SETTINGS | settings)
    trainer.group = trainer.gradients.group = group
    if not group.is_first:  # rank 0 has to share its weights
        torch.nn.init.zeros_(next(trainer.model.parameters()))
    trainer.gradients.adds_in_tree = not is_ddp
    if settings.get("shard"):
        trainer.whole_model = make_trainer(**SETTINGS | settings).model
    return trainer


def train(group: ProcessGroup, folder: Path, save_at: int, stop_at: int, settings: dict[str, Any]) -> Any:
    """Train from the newest checkpoint up to a step; return the losses and all tensors of the state."""
    trainer = trainer_of(group, **settings)
    checkpoints = Checkpoints(folder, n_snapshots=2)
    if group.is_first:
        checkpoints.restore(trainer)
    trainer.share()
    if not group.is_first:
        trainer.follow()
        group.finish()
        return None
    losses = []
    for event in trainer.run():
        losses.append(event.loss)
        if event.step == save_at:
            checkpoints.save(trainer, snapshot=True)
        if event.step == stop_at:
            break
    with trainer.using_eval_weights():
        validated = {name: value.clone() for name, value in trainer.whole_model.state_dict().items()}
    tensors = {**trainer.weights(), **trainer.optimizer_state(), **{f"ema {k}": v for k, v in validated.items()}}
    state = {name: value.clone().numpy() for name, value in tensors.items()}
    group.command("stop")
    group.finish()
    return losses, state


def test_two_processes_with_ddp_compute_what_one_does(tmp_path: Path) -> None:
    losses, state = train(ProcessGroup(), tmp_path / "1", 0, 30, {})
    assert len(losses) == 30
    first, second = run_ranks(2, train, tmp_path / "2", 0, 30, {"is_ddp": True})
    assert second is None
    assert first[0] == pytest.approx(losses, rel=1e-5)
    assert first[1].keys() == state.keys()
    for name, value in state.items():
        assert first[1][name] == pytest.approx(value, rel=1e-3, abs=1e-6), name


def test_any_number_of_processes_that_is_a_power_of_two_computes_the_same_bits(tmp_path: Path) -> None:
    """One process to the end; two, then four, then one, each of which resumes where the others stopped."""
    losses, state = train(ProcessGroup(), tmp_path / "1", 0, 30, {})
    parts = [
        run_ranks(2, train, tmp_path / "parts", 8, 8, {})[0],
        run_ranks(4, train, tmp_path / "parts", 20, 20, {})[0],
        train(ProcessGroup(), tmp_path / "parts", 0, 30, {}),
    ]
    assert [loss for part in parts for loss in part[0]] == losses
    assert all((parts[-1][1][name] == value).all() for name, value in state.items())


@pytest.mark.skipif(not hasattr(FSDPModule, "set_custom_reduce_scatter"), reason="needs a newer torch")
@pytest.mark.parametrize("n_processes", [2, 4])
def test_sharding_does_not_change_the_bits(tmp_path: Path, n_processes: int) -> None:
    """Gradients are clipped at every step, so their norm counts as well. A part has a multiple of 16 numbers."""
    settings = {"clip_norm": 0.01, "width": 64}
    losses, state = train(ProcessGroup(), tmp_path / "1", 0, 30, settings)
    first = run_ranks(n_processes, train, tmp_path / "2", 0, 30, settings | {"shard": True})[0]
    assert first[0] == losses
    assert first[1].keys() == state.keys()
    assert all((first[1][name] == value).all() for name, value in state.items())


@pytest.mark.parametrize(
    ("n_processes", "settings"),
    [(3, {"micro_batches": 3}), (4, {"is_ddp": True}), (3, {"micro_batches": 3, "shard": True})],
    ids=["all-reduce", "ddp", "shard"],
)
def test_a_run_resumed_by_as_many_processes_is_bit_identical(
    tmp_path: Path, n_processes: int, settings: dict[str, Any]
) -> None:
    """More than two: with two, the order in which gradients are added up does not matter."""
    whole = run_ranks(n_processes, train, tmp_path, 5, 12, settings)[0]
    resumed = run_ranks(n_processes, train, tmp_path, 0, 12, settings)[0]
    assert resumed[0] == whole[0][5:]
    assert all((resumed[1][name] == value).all() for name, value in whole[1].items())


def fail(group: ProcessGroup, how: str) -> Any:
    """Train until the last process fails at step 3; return the losses."""
    trainer = trainer_of(group)
    trainer.share()
    try:
        if group.is_first:
            return [event.loss for event in trainer.run()]
        while True:
            group.receive_command()
            if trainer.step == 3 and group.rank == group.size - 1:
                if how == "dies":
                    os._exit(3)
                if how == "reports":
                    group.report_failure(OSError("the disk is full"))
                    os._exit(1)
                os.kill(os.getpid(), signal.SIGSTOP)
            trainer._take_step()
    except LostProcessError:
        group.abandon()
        raise


def abandon(group: ProcessGroup) -> bool:
    trainer_of(group).share()
    group.exchange("shared", {})  # else rank 0 could end while the other one still connects its heartbeat
    if not group.is_first:
        time.sleep(1.0)
    group.abandon()
    assert group._heartbeat is not None
    return group._heartbeat.is_alive()


def test_the_heartbeat_of_a_process_that_gives_up_ends_at_once() -> None:
    """Python aborts if it ends while a thread is within gloo; the supervisor would take that for a crash."""
    assert run_ranks(2, abandon) == [False, False]


def lose_the_leader(group: ProcessGroup) -> None:
    if group.is_first:
        os._exit(3)
    group.share()


def test_a_process_that_ends_before_the_first_heartbeat_is_lost() -> None:
    code, error = run_ranks(2, lose_the_leader)
    assert code == 3
    with pytest.raises(LostProcessError, match="Process 1 of 2 lost the connection"):
        raise error


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("dies", LostProcessError, r"Process 2 \(on .*\) of 3 died or does not answer. Everything up to"),
        ("reports", TrainingError, "^Process 2 of 3: the disk is full$"),
    ],
)
def test_a_process_that_ends_is_named(how: str, kind: type[Exception], message: str) -> None:
    first, second, _ = run_ranks(3, fail, how)
    with pytest.raises(kind, match=message):
        raise first
    with pytest.raises(LostProcessError, match="Process 1 of 3 lost the connection"):
        raise second


def test_a_process_that_hangs_ends_the_others() -> None:
    first, second, _ = run_ranks(3, fail, "hangs", stopped=1, timeout=2)
    assert (first, second) == (75, 75)


def wait_for_a_stopped_process(group: ProcessGroup, stopped: int, waits: str, folder: Path) -> None:
    """Do what processes do before training, until the heartbeat ends this one; write what it reports to a file."""
    logging.getLogger("manyheads").addHandler(logging.FileHandler(folder / str(group.rank)))
    group.exchange("started", {})
    if group.rank == stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
    if waits == "exchanges":
        group.exchange("data", {})
    elif group.is_first:
        time.sleep(600)  # prepares
    group.share({})


@pytest.mark.parametrize("waits", ["exchanges", "prepares"])
def test_a_process_that_is_stopped_before_training_is_named(tmp_path: Path, waits: str) -> None:
    results = run_ranks(2, wait_for_a_stopped_process, 1, waits, tmp_path, stopped=1, timeout=4)
    assert results[0] == 75
    (line,) = (tmp_path / "0").read_text("utf-8").splitlines()
    assert re.match(r"Process 1 \(on .*\) of 2 died or does not answer\. Everything up to", line)


def test_a_leader_that_is_stopped_before_training_is_named(tmp_path: Path) -> None:
    results = run_ranks(2, wait_for_a_stopped_process, 0, "prepares", tmp_path, first_stopped=True, timeout=4)
    assert results[1] == 75
    assert (tmp_path / "1").read_text("utf-8") == "Process 0 of 2 does not answer: process 1 ends.\n"


def prepare_for_long(group: ProcessGroup, seconds: float) -> dict[str, Any]:
    """Let rank 0 compute without a pause, as cleaning and tokenizing do, while the others wait."""
    end = time.monotonic() + (seconds if group.is_first else 0)
    while time.monotonic() < end:
        sorted(range(10_000))
    return group.share({"done": True})


def test_a_process_that_prepares_for_longer_than_the_timeout_is_not_lost() -> None:
    assert run_ranks(2, prepare_for_long, 12.0, timeout=5) == [{"done": True}] * 2


def test_a_missing_process_is_named() -> None:
    (first,) = run_ranks(2, fail, "", absent=1, timeout=1)
    with pytest.raises(LostProcessError, match=r"Process 1 of 2 did not arrive within 1 s\. Start all 2 processes"):
        raise first


def test_incomplete_variables_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"RANK is set, but .* incomplete \('MASTER_ADDR'\)\. Start the processes"):
        ProcessGroup.join({"RANK": "0", "WORLD_SIZE": "2"})
    assert ProcessGroup.join({}).is_alone
    assert ProcessGroup.join({"RANK": "0", "WORLD_SIZE": "1"}).is_alone


def test_messages_and_commands_reach_every_process() -> None:
    results = run_ranks(2, talk)
    assert results[0] == results[1] == [{"a": [1, "ü"]}, [{"rank": 0}, {"rank": 1}], [3.0, 0.5]]


def talk(group: ProcessGroup) -> Any:
    message = group.share({"a": [1, "ü"]} if group.is_first else None)
    return [message, group.exchange("names", {"rank": group.rank}), group.sum([1.0 + group.rank, 0.25])]


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environ = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        with pytest.raises(TrainingError, match=f"MASTER_PORT = {port} on 127.0.0.1 cannot be used: Address .* in use"):
            ProcessGroup.join(environ)
