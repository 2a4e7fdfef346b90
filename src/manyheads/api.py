"""The package in one call each: load a bundle and look inside it, switch heads off, prune, or train one.

    import manyheads as mh

    model = mh.load("runs/quickstart/bundle")
    model.predict(["Two cats are sleeping."])
    model.heads()                                    # a role card for every head
    model.trace("Two cats are sleeping.")            # what every head computes; a notebook shows the maps
    model.ablate(["decoder.1.cross/2"]).predict(["Two cats are sleeping."])
    model.lens("Two cats are sleeping.")             # the lens page, inside a notebook
    model.prune(share=0.1).bundle.save("smaller")
    mh.walk(model, "Two cats are sleeping.", "decoder.1.cross/2")
    mh.train("recipe.toml")

    recipe = mh.init(frame, text_column="body", label_column="team")   # files, lists, dicts, pandas or polars
    model = mh.train(recipe, "runs/tickets")
    model.evaluate("holdout.csv").scores
    model.predict(["I was charged twice."], threshold=0.9)

`import manyheads as mh` has these names. Code inside the package uses `manyheads.bundle.load` instead. May import
serve, compress, lens, run and everything below them.
"""

import copy
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from manyheads import bundle as bundles
from manyheads import lens, walks
from manyheads.bundle import Bundle
from manyheads.compress.head_removal import pruned_bundle, remove_heads
from manyheads.compress.pruning import Method, PruningReport, StageProgress, prune
from manyheads.compress.trade_off import MAX_COST, Compressed
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import LensError, RecipeError
from manyheads.lens import Head, Trace, ablation_gates, find_heads
from manyheads.lens.roles.head_cards import HeadCards
from manyheads.lens.roles.role_assignment import make_report
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.lens.traces.encoded_examples import encode_examples
from manyheads.lens.traces.examples import SAMPLE, sample_examples, with_targets
from manyheads.lens.visible_ablation import VisibleAblation, find_visible_ablation
from manyheads.messages import _
from manyheads.proposals.cost_estimate import measure_cost
from manyheads.proposals.fitted_recipe import propose
from manyheads.proposals.recipe_text import recipe_text, with_files_from
from manyheads.proposals.recognition import recognize
from manyheads.proposals.survey import survey
from manyheads.report import follow
from manyheads.run import (
    Corpus,
    Event,
    Finished,
    Interrupted,
    Recipe,
    StopRequest,
    read_recipe,
    run,
    score_rows,
    uses_of,
)
from manyheads.run.bundle_columns import columns_for
from manyheads.settings import build, to_table
from manyheads.storage import atomic_write
from manyheads.tasks import TASKS, Card, Task
from manyheads.tasks.task_init import Request
from manyheads.text.reading.python_rows import is_rows, rows_file
from manyheads.walks import Walk

_N_ROWS = 200  # that choose the heads to prune, and again as many that measure the cost
_N_NAMED = 3  # heads in a repr
_HEIGHT = 860  # of the lens page in a notebook, in pixels


@dataclass(frozen=True, repr=False)
class InspectableBundle(Bundle):
    """A bundle that can be looked into: roles of its heads, traces, ablation, pruning, and its lens page.

    >>> model
    InspectableBundle(seq2seq en→zh, 12 heads, 29,376 parameters, test BLEU 12.5)
    >>> without = model.ablate(["decoder.0.cross/1"])
    >>> without
    AblatedBundle(seq2seq en→zh, 12 heads, 29,376 parameters, without decoder.0.cross/1)
    >>> model.trace("The cat sees the dog.", "猫看见狗。")
    Trace('The cat sees the dog.' → '猫看见狗。', 3 attentions, 12 heads)
    """

    def evaluate(
        self,
        data: Any = None,
        *,
        test_set: str | None = None,
        columns: Mapping[str, str] | None = None,
        threshold: float | None = None,
        **changes: Any,
    ) -> Card:
        """Return the scorecard of a test set: `.scores` has a confidence interval for each score.

        `data` is a file, files or rows: tuples of the task's fields, dicts, a data frame of pandas or polars. The
        columns are those that the bundle was trained with, unless `columns` names others: {"text": "body"}. Without
        data, the test set of the recipe is scored, or that of the name `test_set`. `changes` override decoding
        settings, such as `beam=5`.
        """
        bundle = self if threshold is None else self.with_threshold(threshold)
        if "beam" in changes:
            changes = {"method": "beam"} | changes
        settings = build(DecodeSettings, to_table(self.decode) | changes, "decode.")
        if data is None:
            tests = Corpus.of(Recipe.from_table(self.recipe)).tests()
            name = test_set or next(iter(tests))
            if name not in tests:
                raise RecipeError(
                    _("There is no test set {test_set!r}. Available: {tests}.", test_set=name, tests=", ".join(tests))
                )
            return score_rows(bundle.engine_task, list(tests[name]), settings, uses_of(self, name))
        with TemporaryDirectory() as folder:
            fields = self.task.fields(self.task.settings)
            files = [rows_file(data, fields, Path(folder))] if is_rows(data) else _paths(data)
            chosen = columns_for(self, files, fields, columns or {}, _column_argument)
            rows = list(self.task.read([str(file) for file in files], chosen, self.task.settings))
            return score_rows(bundle.engine_task, rows, settings, uses_of(self, "", files))

    def heads(self, sample: int = SAMPLE) -> HeadCards:
        """Return a role card for every head, measured on this many of the bundle's own held-out texts.

        This takes seconds: roles are compared with those of untrained models.
        """
        examples = with_targets(self, sample_examples(self, sample))
        return HeadCards(make_report(self.task.model, encode_examples(self.task, examples)))

    def trace(self, text: str, answer: str | None = None) -> Trace:
        """Record what every head computes as the model reads a text and writes this answer, or its own."""
        return lens.trace(self, text, answer)

    def ablate(self, heads: Iterable[Head | str] | str) -> "AblatedBundle":
        """Return the bundle with these heads switched off; this bundle is not changed.

        The name of an attention, such as `encoder.0.self`, selects all of its heads.
        """
        chosen = find_heads(self.task.model, [heads] if isinstance(heads, str) else heads)
        return _ablated(self, chosen)

    def visible_ablation(self) -> VisibleAblation:
        """Return a head, and a held-out text of the bundle whose answer visibly changes without it.

        Best is one word that becomes another. This takes seconds: short texts are answered without each head in turn.
        """
        found = find_visible_ablation(self)
        if found is None:
            raise LensError(
                _("No single head changes an answer. `manyheads heads importance` measures what each does.")
            )
        return found

    def prune(
        self,
        share: float,
        *,
        method: Method = "greedy",
        sample: int = _N_ROWS,
        valid: Sequence[Path] = (),
        max_cost: float = MAX_COST,
        progress: StageProgress = lambda stage, done, total: None,
    ) -> Compressed[PruningReport]:
        """Remove this share of the heads; `.bundle` of the result is smaller, `.trade_off` has the measured cost.

        `sample` validation rows choose the heads, others of the same number measure the cost: rows of the bundle's
        recipe, or of the files `valid`. A cost above `max_cost` is refused. Learned gates and fine-tuning need training
        data: `manyheads heads prune` has them.
        """
        if method == "gates":
            raise LensError(_('method = "gates" trains the model. Use `manyheads heads prune --method gates`.'))
        rows = valid_rows(self, 2 * sample, valid)
        half = len(rows) // 2
        with ExitStack() as stack:
            choosing, measuring = (
                stack.enter_context(open_sample(self.task, part, self.decode)) for part in (rows[:half], rows[half:])
            )
            compressed = prune(self, choosing, measuring, share, method, max_cost=max_cost, progress=progress)
        engine = EngineSelector(self.engine.name, is_int8=self.engine.is_int8)  # each bundle has its own weights
        return replace(compressed, bundle=replace(compressed.bundle, engine=engine))

    def to_huggingface(self, path: Path | str) -> None:
        """Write a folder that `transformers` loads; what its classes cannot express is refused, all at once."""
        from manyheads.interop import export_huggingface  # needed here only

        export_huggingface(self, path)

    def lens(self, *texts: str, height: int = _HEIGHT) -> "LensPage":
        """Return the lens page of one or more texts: a notebook shows it, `save` writes it as one HTML file.

        Answers without heads are computed beforehand, so that switching a head off works without a server. That takes
        up to 20 seconds for each text.
        """
        from manyheads.serve.lens_page.lens_file import lens_page  # serve is needed here only

        if not texts:
            raise LensError(_('Give a text: lens("Two cats are sleeping.").'))
        return LensPage(lens_page(self, texts), texts, height)


@dataclass(frozen=True, kw_only=True, repr=False)
class AblatedBundle(Bundle):
    """A bundle some of whose heads are switched off: their outputs are multiplied by 0 just before W^O.

    Only PyTorch runs gated heads, so `engine` is "torch". `save` removes the heads and writes an ordinary bundle.
    """

    whole: Bundle = field(compare=False)
    off: tuple[Head, ...]

    def __repr__(self) -> str:
        named = ", ".join(map(str, self.off[:_N_NAMED])) or "no head"
        more = f" and {len(self.off) - _N_NAMED} more" if len(self.off) > _N_NAMED else ""
        return f"{super().__repr__()[:-1]}, without {named}{more})"

    def ablate(self, heads: Iterable[Head | str] | str) -> "AblatedBundle":
        """Return the bundle with these heads switched off too."""
        more = find_heads(self.task.model, [heads] if isinstance(heads, str) else heads)
        return _ablated(self.whole, find_heads(self.whole.task.model, [*self.off, *more]))

    def trace(self, text: str, answer: str | None = None) -> Trace:
        """Record what every head computes with these heads off: they contribute nothing, later heads see the effect."""
        return lens.trace(self, text, answer)

    def save(self, path: Path | str) -> None:
        """Write the bundle without these heads: rows of W^Q, W^K and W^V and columns of W^O are removed."""
        pruned_bundle(self.whole, remove_heads(self.whole.task, self.off)).save(path)


def _ablated(whole: Bundle, heads: Sequence[Head]) -> AblatedBundle:
    parts = {each.name: getattr(whole, each.name) for each in fields(Bundle)}
    # Scores, and the measured cost of a shortlist, are those of the whole model.
    parts |= {"task": _gated_copy(whole.task, heads), "engine": EngineSelector("torch"), "scores": {}}
    return AblatedBundle(**parts | {"shortlist": None, "shortlist_cost": None}, whole=whole, off=tuple(heads))


def _gated_copy(task: Task, heads: Sequence[Head]) -> Task:
    """Return the task with modules of its own, which share the weights and gate these heads."""
    copies = {}
    for each in fields(task):  # type: ignore[arg-type]
        module = getattr(task, each.name)
        if isinstance(module, nn.Module):
            shared = {id(tensor): tensor for tensor in chain(module.parameters(), module.buffers())}
            copies[each.name] = copy.deepcopy(module, shared)
    gated: Task = replace(task, **copies)  # type: ignore[type-var]
    gates = ablation_gates(gated.model, heads)
    for attention in gated.model.attentions():
        attention.gate = gates.get(attention.name)
    return gated


@dataclass(frozen=True)
class LensPage:
    """The lens page of some texts as one HTML document."""

    html: str = field(repr=False)
    texts: tuple[str, ...]
    height: int = field(default=_HEIGHT, repr=False)  # in a notebook, in pixels

    def save(self, path: Path | str) -> None:
        """Write the page to a file, which a browser opens without a server."""
        atomic_write(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        """Show the page in a notebook: inside an iframe, so that its styles and scripts stay apart."""
        style = f"width:100%;height:{self.height}px;border:1px solid #e3e5e9"
        return f'<iframe style="{style}" title="manyheads lens" srcdoc="{escape(self.html)}"></iframe>'


def load(
    path: Path | str, device: str = "cpu", engine: str = "auto", *, use_shortlist: bool = True
) -> InspectableBundle:
    """Read a bundle after verifying its checksums; the arguments are those of `manyheads.bundle.load`."""
    return _inspectable(bundles.load(path, device, engine, use_shortlist=use_shortlist))


def from_huggingface(path: Path | str) -> InspectableBundle:
    """Read a local folder of Hugging Face or sentence-transformers; `save` writes it as a bundle."""
    from manyheads.interop import import_huggingface  # needed here only

    return _inspectable(import_huggingface(path))


def _inspectable(bundle: Bundle) -> InspectableBundle:
    return InspectableBundle(**{each.name: getattr(bundle, each.name) for each in fields(Bundle)})


def embed(bundle: Bundle | Path | str, texts: Iterable[str]) -> NDArray[np.float32]:
    """Return the vector of each text as a row; `bundle` is loaded, or the path of one."""
    return (bundle if isinstance(bundle, Bundle) else bundles.load(bundle)).embed(texts)


def trace(bundle: Bundle, text: str, answer: str | None = None) -> Trace:
    """Record what every head computes as a model reads a text and writes this answer, or its own."""
    return lens.trace(bundle, text, answer)


def walk(
    bundle: Bundle | str,
    text: str | None = None,
    head: Head | str | None = None,
    *,
    answer: str | None = None,
    query: str | None = None,
) -> Walk:
    """Return every number of one head, by default the first, as a model reads a text, and of the block around it.

    `walk("I love cats")`, with a text alone, takes the toy model of `manyheads walk`.

    `Walk.block` has the rest, from the embedding to the loss. `query` is the word, or the number of the position, to
    show in detail; a decoder writes `answer` or its own.
    """
    chosen = Head.parse(head) if isinstance(head, str) else head
    layer, number = (None, 0) if chosen is None else (chosen.attention, chosen.number)
    if isinstance(bundle, str):
        if text is not None:
            raise TypeError(_("The first argument of walk is a bundle, not its path: walk(load(path), text)."))
        return walks.walk_sentence(bundle, answer=answer, layer=layer, head=number, query=query)
    if text is None:
        raise TypeError(_("walk needs a text that the model reads: walk(bundle, text)."))
    return walks.walk(bundle, text, answer=answer, layer=layer, head=number, query=query)


def init(
    data: Any,
    *,
    valid: Any = None,
    test: Any = None,
    task: str = "",
    output: Path | str | None = None,
    budget: float | None = None,
    text_column: str = "",
    label_column: str = "",
    tags_column: str = "",
    source_column: str = "",
    target_column: str = "",
    source_language: str = "",
    target_language: str = "",
) -> Recipe:
    """Look at data and return a recipe that fits it and this machine; `output` is a file to write it to.

    `data`, `valid` and `test` are a file, files, or rows: tuples such as (text, label), dicts, a dict of columns, a
    data frame of pandas or polars. Rows are kept in a file of the user's cache, which the recipe names. `task` is a
    task's name, such as "classify", and `budget` the seconds that training may take.
    """
    named = {"source": source_column, "target": target_column, "text": text_column}
    named |= {"tags": tags_column, "label": label_column}
    columns = {field: column for field, column in named.items() if column}
    direction = (source_language, target_language)
    request = Request(task=task, columns=columns, direction=direction)
    sets = recognize(_data_files(data, task), _data_files(valid, task), _data_files(test, task), request)
    surveyed = survey(
        sets.settings, sets.task, sets.clean, named_languages=sets.languages, requested_languages=direction
    )
    plan = propose(sets.settings, surveyed, budget, partial(measure_cost, start=time.process_time()))
    if output is not None:
        path = Path(output)
        proposal = with_files_from(plan.proposal, path.parent)
        atomic_write(path, recipe_text(proposal, ["Proposed by manyheads.init; change what you like."]).encode())
    return plan.recipe


def _data_files(data: Any, task: str) -> list[Path]:
    """Return the files of data; rows are written to one."""
    if data is None:
        return []
    if not is_rows(data):
        return _paths(data)
    kind = next((kind for kind in TASKS.values() if kind.init.cli_name == task), None)
    return [rows_file(data, ("text", "label") if kind is None else kind.fields(kind.settings_type()))]


def _paths(data: Any) -> list[Path]:
    return [Path(file) for file in ([data] if isinstance(data, str | Path) else data)]


def _column_argument(field: str, column: str) -> str:
    return f'columns={{"{field}": "{column}"}}'


def train(
    recipe: Recipe | Mapping[str, Any] | Path | str,
    output: Path | str | None = None,
    *,
    changes: Sequence[str] = (),
    progress: Callable[[Event], None] = lambda event: None,
) -> InspectableBundle:
    """Train by a recipe, or resume, and return the bundle; the run folder is `output`, by default runs/NAME.

    The recipe is a file, a table as in such a file, or a `Recipe`. `changes` override its settings, like
    "train.steps=2000". `progress` receives every event of the run. On an interruption a checkpoint is written, and the
    same call resumes.
    """
    if isinstance(recipe, Path | str):
        path = Path(recipe)
        made, folder = read_recipe(path, changes), Path(output or Path("runs") / path.stem)
    elif output is None:
        raise RecipeError(_("A recipe that is not a file has no name. Give the run folder: output='runs/my-model'."))
    elif changes:
        raise RecipeError(_("changes are for a recipe file. Change the recipe itself instead."))
    else:
        made, folder = recipe if isinstance(recipe, Recipe) else Recipe.from_table(recipe), Path(output)
    with ExitStack() as stack:
        stop = StopRequest()
        if threading.current_thread() is threading.main_thread():  # others cannot handle signals
            stack.enter_context(stop)
        last: Event | None = None
        for last in follow(run(made, folder, stop), folder):
            progress(last)
    if isinstance(last, Interrupted):
        raise KeyboardInterrupt(
            _("Stopped at step {step:,}, which is saved. Call train again to resume.", step=last.step)
        )
    assert isinstance(last, Finished)  # the only other way a run ends
    return load(last.bundle)
