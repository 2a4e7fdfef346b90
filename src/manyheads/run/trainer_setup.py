"""What every process of a run builds in the same way: the task with its model, and the trainer."""

from dataclasses import replace
from typing import Any

import torch

from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.model.norms import BatchNorm
from manyheads.run.corpus import Corpus
from manyheads.run.preparation import PreparedData
from manyheads.run.recipe import Recipe
from manyheads.tasks import Task, TrainingData
from manyheads.training import ProcessGroup, Trainer


def pick_own_device(recipe: Recipe, group: ProcessGroup) -> torch.device:
    """Return the device of this process: with several, each has a GPU of its own."""
    device = pick_device(recipe.device)
    if group.is_alone or device.type == "cpu":
        return device
    if device.type != "cuda" or device.index is not None:
        raise RecipeError(
            _(
                'device = "{device}" is not for {n_processes} processes. Use "cuda", of which each process takes '
                'one, or "cpu".',
                device=recipe.device,
                n_processes=group.size,
            )
        )
    if group.local_rank >= torch.cuda.device_count():
        raise RecipeError(
            _(
                "Process {rank} is number {local_rank} on its machine, which has {n_gpus} GPUs. Start one "
                "process for each GPU.",
                rank=group.rank,
                local_rank=group.local_rank + 1,
                n_gpus=torch.cuda.device_count(),
            )
        )
    torch.cuda.set_device(group.local_rank)
    return torch.device("cuda", group.local_rank)


def check_device(recipe: Recipe, device: torch.device) -> None:
    """Refuse settings of [train] that this device does not support."""
    if recipe.train.compile and device.type != "cuda":
        raise RecipeError(
            _("train.compile = true needs a GPU, but the device is {device}. Leave it out.", device=device)
        )


def create_task(recipe: Recipe, data: PreparedData) -> Task:
    """Build the task of a recipe with a newly initialized model, on the CPU."""
    torch.manual_seed(recipe.seed)
    model = replace(recipe.model, vocab_size=data.tokenizer.vocab_size)
    return recipe.task_class.create(Transformer(model), data.tokenizer, recipe.task, data.encoded.texts)


def create_trainer(recipe: Recipe, data: PreparedData, task: Task, group: ProcessGroup, whole: Task) -> Trainer[Any]:
    """Build the trainer of a task; if it is to be sharded, `whole` is the task that rank 0 validates."""
    if not group.is_alone and any(isinstance(module, BatchNorm) for module in task.module.modules()):
        raise RecipeError(
            _(
                'model.norm = "batch" averages over a batch, which several processes would divide. Train with one '
                'process, or use another norm, such as "layer".'
            )
        )
    training_data = TrainingData(
        encoded=data.encoded,
        batch_tokens=recipe.train.batch_tokens,
        sampling=recipe.tokenizer.sampling,
        seed=recipe.seed,
        boundaries=data.boundaries,
        weights=Corpus.of(recipe).weights,
    )
    return Trainer(
        task.module,
        task.training_task(training_data),
        recipe.train,
        width=recipe.model.width,
        seed=recipe.seed,
        group=group,
        whole_model=whole.module,
    )
