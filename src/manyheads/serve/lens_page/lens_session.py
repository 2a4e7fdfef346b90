"""`LensSession`: everything that the lens page asks for, as JSON objects and bytes.

Answers depend on the request alone: the session keeps no state of a user, so several tabs do not disturb each other.
The maps of recent texts are kept in memory; those of older texts are computed again when they are asked for.
"""

import base64
import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from manyheads.answer.remarks import text_remarks
from manyheads.errors import DataError, LensError
from manyheads.language import Language
from manyheads.lens.heads import Head, find_heads
from manyheads.lens.interventions import ablate_text, answer_text, contrast_heads, text_importance
from manyheads.lens.pictures.head_pictures import MASS, View, draw_head, draw_overview
from manyheads.lens.pictures.sheet import Format
from manyheads.lens.traces.display_units import Side, Sides, UnitName, sides_of
from manyheads.lens.traces.head_maps import AttentionMaps, HeadMaps, head_maps
from manyheads.lens.traces.unit_maps import MapKind
from manyheads.messages import Message, _
from manyheads.serve.lens_page.lens_model import MAX_CHARACTERS, LensModel, attention_place
from manyheads.serve.service.problems import ProblemError
from manyheads.tasks import ModelInput, Prediction, Task
from manyheads.tasks.lens_output import LensOutput
from manyheads.walks.head_row import walk_row, walk_rows

VERSION = 1  # of the JSON objects
_MAX_BYTES = 1_500_000_000  # of the maps in memory
_MAX_TEXTS = 64
_MAX_REQUESTS = 4096
_MAX_SECONDS = 60.0  # of a measurement of every head
_DELETED = Message("The folder of this bundle was deleted. The page goes on with the copy in memory.")


@dataclass(frozen=True)
class TraceRequest:
    """What the page traces: a text, and an answer if the model should not write its own."""

    bundle: str
    text: str
    answer: str | None = None
    step: int | None = None

    def id(self, secret: bytes = b"") -> str:
        """Return a name of the request that depends on its content, and on the secret of the session."""
        content = json.dumps([self.bundle, self.text, self.answer, self.step])
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=10, key=secret).hexdigest()


@dataclass(frozen=True, eq=False)
class TracedText:
    """A text that a model has read, with the maps of every head."""

    request: TraceRequest
    model_input: ModelInput
    maps: HeadMaps
    view: dict[str, Any]  # the JSON object of the page


class LensSession:
    """The bundles that a page shows, and the texts that were traced.

    With a secret, only those who sent a text know the id of its trace. Without one, a saved page has the same bytes
    every time.
    """

    def __init__(self, bundles: Sequence[LensModel], secret: bytes = b"") -> None:
        self._secret = secret
        self.bundles = {opened.id: opened for opened in bundles}
        self._traced: OrderedDict[str, TracedText] = OrderedDict()
        self._requests: OrderedDict[str, TraceRequest] = OrderedDict()
        self._lock = threading.Lock()  # of the two above

    def describe(self) -> dict[str, Any]:
        """Return the models."""
        return {"version": VERSION, "bundles": [opened.describe() for opened in self.bundles.values()]}

    def opened(self, id: str) -> LensModel:
        """Return a bundle by its id."""
        if id not in self.bundles:
            raise ProblemError(
                404, _("There is no bundle {id!r}. Known: {bundles}.", id=id, bundles=", ".join(self.bundles))
            )
        return self.bundles[id]

    def trace(self, request: TraceRequest) -> TracedText:
        """Return a traced text, from memory if it was traced before."""
        id = request.id(self._secret)
        with self._lock:
            if id in self._traced:
                self._traced.move_to_end(id)
                return self._traced[id]
        opened = self.opened(request.bundle)
        with opened.lock:
            traced = _trace(opened, request, id)
        with self._lock:
            self._requests[id] = request
            self._traced[id] = traced
            while len(self._traced) > 1 and (
                len(self._traced) > _MAX_TEXTS or sum(text.maps.n_bytes for text in self._traced.values()) > _MAX_BYTES
            ):
                self._traced.popitem(last=False)
            while len(self._requests) > _MAX_REQUESTS:
                self._requests.popitem(last=False)
        return traced

    def find(self, trace_id: str) -> TracedText:
        """Return a traced text by the id of its trace."""
        with self._lock:
            request = self._requests.get(trace_id)
        if request is None:
            raise ProblemError(404, _("This text is no longer in memory. Send it again."))
        return self.trace(request)

    def ablate(self, trace_id: str, heads: Sequence[str]) -> dict[str, Any]:
        """Return the answer without some heads."""

        def compute(traced: TracedText, task: Task, opened: LensModel) -> dict[str, Any]:
            found = find_heads(task.model, heads)
            ablation = ablate_text(task, traced.model_input, found, opened.decode, opened.aligner)
            return {"trace": trace_id, "heads": [str(head) for head in found], **ablation.to_json()}

        return self._with_model(trace_id, compute)

    def importance(self, trace_id: str, seconds: float = _MAX_SECONDS) -> dict[str, Any]:
        """Return how much log-probability the answer loses without each head."""

        def compute(traced: TracedText, task: Task, opened: LensModel) -> dict[str, Any]:
            changes = text_importance(task, traced.model_input, _deadline(seconds))
            heads = [{"head": str(head), "change": change} for head, change in changes]
            return {"trace": trace_id, "unit": "nats", "heads": heads}

        return self._with_model(trace_id, compute, takes_long=True)

    def contrast(self, trace_id: str, position: int, instead: int | str) -> dict[str, Any]:
        """Return which heads make the model choose one token or label instead of another."""

        def compute(traced: TracedText, task: Task, opened: LensModel) -> dict[str, Any]:
            return contrast_heads(task, traced.model_input, position, instead, _deadline(_MAX_SECONDS)).to_json()

        return self._with_model(trace_id, compute, takes_long=True)

    def walk(self, trace_id: str, head: Head, query: int) -> dict[str, Any]:
        """Return every number of one row of one head."""

        def compute(traced: TracedText, task: Task, opened: LensModel) -> dict[str, Any]:
            return asdict(walk_row(task, traced.model_input, head, query))

        return self._with_model(trace_id, compute)

    def walk_rows(self, trace_id: str, attention: str) -> list[dict[str, Any]]:
        """Return every number of every head and row of one attention."""
        traced = self.find(trace_id)
        opened = self.opened(traced.request.bundle)
        with opened.lock:
            rows = walk_rows(opened.task_at(traced.request.step), traced.model_input, attention)
            return [asdict(row) for row in rows]

    def picture(
        self,
        traced: TracedText,
        head: Head | None,
        *,
        form: Format,
        view: View = "matrix",
        kind: MapKind = "weights",
        unit: UnitName = "tokens",
        mass: float = MASS,
        language: Language | None = None,
    ) -> bytes:
        """Draw one head, or all heads of the last kind of attention."""
        task = self.opened(traced.request.bundle).bundle.task
        sides = sides_of(traced.model_input, task.tokenizer)
        if head is None:
            return draw_overview(traced.maps, format=form, sides=sides, language=language)
        return draw_head(
            traced.maps, head, format=form, view=view, kind=kind, unit=unit, mass=mass, sides=sides, language=language
        )

    def _with_model(
        self,
        trace_id: str,
        compute: Callable[[TracedText, Task, LensModel], dict[str, Any]],
        *,
        takes_long: bool = False,
    ) -> dict[str, Any]:
        traced = self.find(trace_id)
        opened = self.opened(traced.request.bundle)
        opened = opened.measured if takes_long else opened
        with opened.lock:
            return compute(traced, opened.task_at(traced.request.step), opened)


def _deadline(seconds: float) -> Callable[[float], None]:
    """Return a progress callback that stops a measurement that takes too long."""
    end = time.monotonic() + seconds

    def check(done: float) -> None:
        if time.monotonic() > end:
            raise LensError(
                _(
                    "Measuring every head takes more than {seconds:.0f} s for this text. Shorten the text.",
                    seconds=seconds,
                )
            )

    return check


def _trace(opened: LensModel, request: TraceRequest, id: str) -> TracedText:
    task = opened.task_at(request.step)
    _check(opened, request)
    answered = answer_text(task, request.text, opened.decode, request.answer)
    model_input = answered.model_input
    n_tokens = max(len(model_input.source), len(model_input.target))
    if n_tokens > opened.max_tokens:
        raise LensError(
            _(
                "The text has {n_tokens:,} tokens; the lens shows at most {max_tokens:,}. Shorten it.",
                n_tokens=n_tokens,
                max_tokens=opened.max_tokens,
            )
        )
    maps = head_maps(task.model, model_input)
    output = task.lens_output(model_input)
    if opened.aligner is not None and request.step is None:
        output = opened.aligner.align_output(model_input.text, output)
    sides = sides_of(model_input, task.tokenizer)
    view = _view(id, request, sides, model_input, maps, output, task.answer_form)
    notes = [*answered.notes, *([_DELETED] if opened.is_deleted else [])]
    view["notes"] += [note.by_language() for note in notes]
    view["warnings"] = [remark.by_language() for remark in _remarks(opened, task, request)]
    return TracedText(request, model_input, maps, view)


def _remarks(opened: LensModel, task: Task, request: TraceRequest) -> Sequence[Message]:
    """Return the remarks of `predict` on a text and on the model's own answer.

    A continuation is not generated again for its remarks: it can be long, and may be a sample.
    """
    prediction: Prediction | None = None
    if request.answer is None and not task.continues_prompts:
        with suppress(DataError):  # a text without a mask, say, has maps but no prediction
            (prediction,) = task.predict([request.text], opened.decode)
    return text_remarks(opened.bundle, request.text, prediction)


def _check(opened: LensModel, request: TraceRequest) -> None:
    if not request.text.strip():
        raise DataError(_("The text is empty. Type a sentence."))
    for what, text in ((_("text"), request.text), (_("answer"), request.answer or "")):
        if len(text) > MAX_CHARACTERS:
            raise DataError(
                _(
                    "The {what} has {n_characters:,} characters; at most {most:,} are shown. Shorten it.",
                    what=what,
                    n_characters=len(text),
                    most=MAX_CHARACTERS,
                )
            )
    if request.answer is not None and not opened.bundle.task.model.settings.has_decoder:
        raise LensError(_("A bundle of task {kind} writes no answer. Leave the answer out.", kind=opened.bundle.kind))


def _view(
    id: str, request: TraceRequest, sides: Sides, model_input: ModelInput, maps: HeadMaps, output: LensOutput, form: str
) -> dict[str, Any]:
    content = output.to_json()
    return {
        "id": id,
        "bundle": request.bundle,
        "text": request.text,
        "answer": model_input.answer,
        "step": request.step,
        "answer_form": form,
        "sides": asdict(sides),
        "attentions": [_attention_view(name, attention, sides) for name, attention in maps.attentions.items()],
        "notes": content.pop("notes"),
        "output": content,
    }


def _attention_view(name: str, maps: AttentionMaps, sides: Sides) -> dict[str, Any]:
    place = attention_place(name)
    queries, keys = {
        "encoder": ("source", "source"),
        "decoder": ("target", "target"),
        "cross": ("written", "source"),
    }[place["kind"]]
    side = getattr(sides, keys)
    assert isinstance(side, Side)
    is_sink = [unit.kind in ("special", "punctuation") for unit in side.tokens]
    _, n_queries, n_keys = maps.steps.shape
    return {
        **place,
        "n_heads": maps.n_heads,
        "queries": queries,
        "keys": keys,
        "n_queries": n_queries,
        "n_keys": n_keys,
        "thumbnails": [base64.b64encode(thumbnail.tobytes()).decode() for thumbnail in maps.thumbnails],
        "thumbnail_shape": list(maps.thumbnails.shape[1:]),
        "heads": [
            {
                "entropy": round(float(maps.entropies[number]), 4),
                "distance": round(float(maps.distances[number]), 3),
                "sink": round(float(maps.key_means[number][is_sink].sum()), 4),
            }
            for number in range(maps.n_heads)
        ],
    }
