"""Checks of a bundle: is it whole, are its weights numbers, does any of it do nothing, are its translations alive?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from manyheads import corpora
from manyheads.bundle import Bundle, load
from manyheads.doctor.findings import Finding, share
from manyheads.doctor.outputs import check_outputs
from manyheads.errors import BundleError, CheckpointError, DataError, ManyheadsError, RecipeError
from manyheads.model import Transformer
from manyheads.model.weights import load_weights, weights_of
from manyheads.run import Corpus, Recipe, RunFolder
from manyheads.settings import to_table
from manyheads.storage import verify_manifest
from manyheads.tasks import Seq2Seq, Seq2SeqSettings
from manyheads.text.tokenizer import Tokenizer

_SENTENCES = 30
_DEAD = 1e-8  # norm of a row


def load_bundle(folder: Path) -> tuple[Finding, Bundle | None]:
    """Whether the bundle is whole; it is loaded if so."""
    try:
        bundle = load(folder, device="auto")
    except BundleError as error:
        return Finding(
            "manifest",
            "bad",
            str(error),
            (),
            "Copy the bundle again, or train it anew. 模型包损坏：请重新复制或重新训练。",
        ), None
    n_parameters = bundle.task.model.n_parameters
    return Finding("manifest", "good", f"every file is as it was written; {n_parameters:,} parameters."), bundle


def load_snapshot(run: Path) -> Bundle | None:
    """The newest snapshot of a run that is not finished, as a bundle; None if there is none that is whole."""
    for folder in sorted(RunFolder(run).snapshots.glob("step-*"), reverse=True):
        try:
            verify_manifest(folder, CheckpointError)
            recipe = Recipe.from_table(RunFolder(run).read_recipe_table())
            tokenizer = Tokenizer.from_file(RunFolder(run).tokenizer_file)
            if not isinstance(recipe.task, Seq2SeqSettings):
                return None  # labels stand in a bundle only
            model = Transformer(replace(recipe.model, vocab_size=tokenizer.vocab_size)).eval()
            load_weights(model, load_file(folder / "weights.safetensors"), str(folder))
        except (ManyheadsError, OSError, SafetensorError):
            continue  # what is wrong with it, the check of the checkpoints says
        return Bundle(Seq2Seq(model, tokenizer, recipe.task), recipe.decode, to_table(recipe))
    return None


def check_finite_weights(weights: Mapping[str, Tensor]) -> Finding:
    """Weights that are no numbers: one is enough to spoil every answer."""
    broken = {name: int((~value.isfinite()).sum()) for name, value in weights.items() if not value.isfinite().all()}
    if not broken:
        return Finding("finite weights", "good", f"all {len(weights)} tensors hold numbers only.")
    return Finding(
        "finite weights",
        "bad",
        f"{share(len(broken), len(weights))} tensors hold NaN or infinity.",
        tuple(f"{name}: {count:,} of {weights[name].numel():,}" for name, count in list(broken.items())[:3]),
        "The training blew up: train anew with a lower train.learning_rate or a longer train.warmup."
        " 权重含 NaN 或无穷大：请降低学习率重新训练。",
    )


def check_dead_rows(weights: Mapping[str, Tensor]) -> Finding:
    """Rows of matrices that are zero, or all the same row: units that do nothing."""
    matrices = {name: value for name, value in weights.items() if value.dim() == 2 and value.isfinite().all()}
    dead = {name: int((value.float().norm(dim=1) < _DEAD).sum()) for name, value in matrices.items()}
    alike = [
        name
        for name, value in matrices.items()
        if len(value) > 1 and bool((value == value[0]).all()) and not dead[name]
    ]
    total, count = sum(len(value) for value in matrices.values()), sum(dead.values())
    examples = [
        f"{name}: {number:,} of {len(matrices[name]):,} rows are zero" for name, number in dead.items() if number
    ]
    examples += [f"{name}: all rows are the same" for name in alike]
    message = f"{share(count, total)} rows of {len(matrices)} matrices are zero"
    message += f"; {len(alike)} matrices repeat one row." if alike else "."
    if count <= total // 1000 and not alike:
        return Finding("dead rows", "good", message)
    return Finding(
        "dead rows", "bad" if alike or count > total // 4 else "warning", message, tuple(examples[:3]),
        "Parts of the model never learnt: lower train.weight_decay and train.learning_rate, and train anew."
        " 部分权重没有学到内容：请降低学习率或权重衰减后重新训练。",
    )  # fmt: skip


def check_collapse(bundle: Bundle, sentences: Sequence[str]) -> Finding:
    """Translate some sentences and look at the whole."""
    assert isinstance(bundle.task, Seq2Seq)  # nothing else translates
    readable = [text for text in sentences if text.strip() and bundle.task.fits(text)]
    if not readable:
        return Finding(
            "output collapse", "warning", "there is no text at hand to translate: its test set is not on this machine.",
            (), "Try it yourself: manyheads predict BUNDLE FILE. 请用 manyheads predict 自行试译。",
        )  # fmt: skip
    return check_outputs("output collapse", readable, bundle.predict(readable, method="greedy", n_best=1))


def sample_sources(table: Mapping[str, object]) -> list[str]:
    """Some sources for a bundle or a run: of its own test or valid set, else of the built-in corpus, else none."""
    try:
        recipe = Recipe.from_table(table)
    except RecipeError:
        return []
    try:
        tests = Corpus.of(recipe).tests()
        return list(dict.fromkeys(source for source, _ in islice(next(iter(tests.values())), _SENTENCES)))
    except (DataError, OSError):
        pass
    language = recipe.task.source_language if isinstance(recipe.task, Seq2SeqSettings) else ""
    if language not in corpora.LANGUAGES:
        return []
    other = next(name for name in corpora.LANGUAGES if name != language)
    return list(dict.fromkeys(source for source, _ in corpora.pairs(language, other, "test", _SENTENCES, 1)))


def check_bundle(folder: Path) -> list[Finding]:
    """Everything about one bundle."""
    manifest, bundle = load_bundle(folder)
    return [manifest] if bundle is None else [manifest, *check_model(bundle)]


def check_model(bundle: Bundle) -> list[Finding]:
    """The weights, and what they make of a few sentences."""
    weights = {name: value.cpu() for name, value in weights_of(bundle.task.module).items()}
    finite = check_finite_weights(weights)
    findings = [finite, check_dead_rows(weights)]
    if finite.verdict == "good" and isinstance(bundle.task, Seq2Seq):  # a model of NaN has nothing to say
        findings.append(check_collapse(bundle, sample_sources(bundle.recipe)))
    return findings
