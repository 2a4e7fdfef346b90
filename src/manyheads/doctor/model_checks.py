"""Checks of a bundle: manifest, finite weights, dead rows, output collapse."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from manyheads import corpora
from manyheads.bundle import Bundle, load
from manyheads.errors import BundleError, CheckpointError, DataError, ManyheadsError, RecipeError
from manyheads.messages import _, _n
from manyheads.model import Transformer, evaluating
from manyheads.model.weights import count_parameters, load_weights, weights_of
from manyheads.run import Corpus, Recipe, RunFolder
from manyheads.settings import to_table
from manyheads.storage import verify_manifest
from manyheads.tasks import PairTask, Task
from manyheads.tasks.findings import Finding, describe_sizes, share
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Tokenizer

_ROWS = 30
_CHARACTERS = 3000  # of a document
_DEAD = 1e-8  # norm of a row


def load_bundle(folder: Path) -> tuple[Finding, Bundle | None]:
    """Check the manifest, and load the bundle if it is intact."""
    try:
        bundle = load(folder, device="auto")
    except BundleError as error:
        return Finding(
            "manifest",
            "bad",
            str(error),
            (),
            _("Copy the bundle again, or train it again."),
        ), None
    message = _("every file matches the manifest; ")
    sizes = describe_sizes(count_parameters(bundle.task.module), bundle.task.tokenizer.vocab_size)
    return Finding("manifest", "good", message + sizes), bundle


def load_snapshot(run: Path) -> Bundle | None:
    """Return the newest intact snapshot of an unfinished run as a bundle, or None."""
    for folder in sorted(RunFolder(run).snapshots.glob("step-*"), reverse=True):
        try:
            verify_manifest(folder, CheckpointError)
            recipe = Recipe.from_table(RunFolder(run).read_recipe_table())
            tokenizer = Tokenizer.from_file(RunFolder(run).tokenizer_file)
            if not issubclass(recipe.task_class, PairTask):
                return None  # the labels of other tasks are stored in bundles only
            model = Transformer(replace(recipe.model, vocab_size=tokenizer.vocab_size)).eval()
            load_weights(model, load_file(folder / "weights.safetensors"), str(folder))
        except (ManyheadsError, OSError, SafetensorError):
            continue  # check_checkpoints reports it
        task = recipe.task_class.restore(model, tokenizer, recipe.task, {})
        return Bundle(task, recipe.decode, to_table(recipe))
    return None


def check_finite_weights(weights: Mapping[str, Tensor]) -> Finding:
    """Check for weights that are NaN or infinite: a single one spoils every prediction."""
    broken = {name: int((~value.isfinite()).sum()) for name, value in weights.items() if not value.isfinite().all()}
    if not broken:
        return Finding(
            "finite weights",
            "good",
            _("all {n_weights} tensors are finite.", n_weights=len(weights)),
        )
    return Finding(
        "finite weights",
        "bad",
        _("{counted} tensors contain NaN or infinity.", counted=share(len(broken), len(weights))),
        tuple(
            _("{name}: {count:,} of {total:,}", name=name, count=count, total=weights[name].numel())
            for name, count in list(broken.items())[:3]
        ),
        _("Training diverged: train again with a lower train.learning_rate or a longer train.warmup."),
    )


def check_dead_rows(weights: Mapping[str, Tensor], sparse: Collection[str] = ()) -> Finding:
    """Check for matrix rows that are zero or all identical, which contribute nothing; `sparse` weights may be zero."""
    matrices = {
        name: value
        for name, value in weights.items()
        if value.dim() == 2 and name not in sparse and value.isfinite().all()
    }
    dead = {name: int((value.float().norm(dim=1) < _DEAD).sum()) for name, value in matrices.items()}
    alike = [
        name
        for name, value in matrices.items()
        if len(value) > 1 and bool((value == value[0]).all()) and not dead[name]
    ]
    total, count = sum(len(value) for value in matrices.values()), sum(dead.values())
    examples = [
        _(
            "{name}: {n_zero:,} of {n_rows:,} rows are zero",
            name=name,
            n_zero=n_zero,
            n_rows=len(matrices[name]),
        )
        for name, n_zero in dead.items()
        if n_zero
    ]
    examples += [_("{name}: all rows are the same", name=name) for name in alike]
    message = _(
        "{counted} rows of {n_matrices} matrices are zero", counted=share(count, total), n_matrices=len(matrices)
    )
    message += _n("; 1 matrix repeats one row.", "; {n} matrices repeat one row.", len(alike)) if alike else _(".")
    if count <= total // 1000 and not alike:
        return Finding("dead rows", "good", message)
    return Finding(
        "dead rows",
        "bad" if alike or count > total // 4 else "warning",
        message,
        tuple(examples[:3]),
        _("Parts of the model have not learned: lower train.weight_decay and train.learning_rate, and train again."),
    )


def check_answers(task: Task, rows: Sequence[Row]) -> Finding:
    """Predict some rows and check the answers for collapse."""
    check, usable = "output collapse", list(task.usable(rows))
    if not usable:
        return Finding(
            check,
            "warning",
            _("not checked: the test set of this bundle is not on this machine."),
            (),
            _("Try it yourself: manyheads predict BUNDLE FILE."),
        )
    with evaluating(task.module):
        return task.doctor.check_outputs(check, task.validate(usable, task.metrics[0]).samples)


def sample_rows(table: Mapping[str, object]) -> list[Row]:
    """Return some rows for a bundle: from its test or validation set, else from the built-in corpus, else none."""
    try:
        recipe = Recipe.from_table(table)
    except RecipeError:
        return []
    try:
        return _first_different(next(iter(Corpus.of(recipe).tests().values())))
    except (DataError, OSError):
        pass
    languages = recipe.task_class.languages(recipe.task)
    if len(languages) != 2 or not {*languages} <= {*corpora.LANGUAGES}:
        return []
    return _first_different(corpora.pairs(*languages, "test", _ROWS, 1))


def _first_different(rows: Iterable[Row]) -> list[Row]:
    """Return the first rows, cut if they are whole documents, without repeating a text."""
    cut = (tuple(field[:_CHARACTERS] for field in row) if len(row) == 1 else row for row in islice(rows, _ROWS))
    return list({row[0]: row for row in cut}.values())


def check_bundle(folder: Path) -> list[Finding]:
    """Run all checks of a bundle."""
    manifest, bundle = load_bundle(folder)
    return [manifest] if bundle is None else [manifest, *check_model(bundle)]


def check_model(bundle: Bundle) -> list[Finding]:
    """Check the weights, and the answers to a few rows."""
    weights = {name: value.cpu() for name, value in weights_of(bundle.task.module).items()}
    finite = check_finite_weights(weights)
    findings = [finite, check_dead_rows(weights, bundle.task.sparse_weights())]
    if finite.verdict == "good":
        findings += [check_answers(bundle.task, sample_rows(bundle.recipe))] if bundle.task.metrics else []
    return findings
