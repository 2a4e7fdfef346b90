"""`Aligner`: word alignments from the cross-attention heads that align best.

The heads are chosen when an aligner is requested (docs/decisions/0015): by gold alignments if the bundle's own corpus
has them, otherwise by occlusion. Occlusion hides each source word in turn from all cross-attention; a target word is
linked to the source word whose absence lowers its probability most. It needs no gold but one pass per word, so it
chooses the heads on a small sample, and the heads then align in one pass.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from manyheads.bundle import Bundle
from manyheads.corpora import Rendering
from manyheads.errors import LensError, ManyheadsError
from manyheads.lens.roles.head_counts import for_each_map, kind_of
from manyheads.lens.roles.measures import ALIGNMENT_VARIANTS, aligned_maps, argmax_links, count_links
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats, encode_examples
from manyheads.lens.traces.examples import sample_examples
from manyheads.messages import _
from manyheads.model import Transformer
from manyheads.model.transformer import DecoderState
from manyheads.tasks import Task
from manyheads.tasks.lens_examples import Example
from manyheads.tasks.lens_output import AlignedSpans, LensOutput
from manyheads.text.reading.gold_alignments import Link
from manyheads.text.tokens.tokenizer import EOS
from manyheads.text.tokens.words import split_text

_N_CHOOSING = 60  # sentences that the heads are chosen by
_MAX_HEADS = 4  # whose maps are averaged
_MIN_DROP = math.log(2)  # nats: without its source word, a target word is at most half as probable


@dataclass(frozen=True)
class Aligner:
    """The heads that align, the alignment variant, and their agreement with the links they were chosen by."""

    task: Task
    heads: tuple[str, ...]
    variant: str  # one of measures.ALIGNMENT_VARIANTS
    agreement: float  # 1 − AER
    chosen_by: str  # "gold" or "occlusion"
    n_texts: int

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        parts: Sequence[Sequence[tuple[int, int, int, int]]] | None = None,
    ) -> list[list[Link]]:
        """Return the sorted links between the words of each pair of texts; `split_words` defines the words.

        `parts` are those of texts that were translated in parts (`Translations.parts`); each is aligned on its own.
        """
        parts = [()] * len(sources) if parts is None else parts
        # One by one: a pair that is too long for the decoder has no links, but the others do.
        return [
            align_parts(source, target, own, self._links)
            for source, target, own in zip(sources, targets, parts, strict=True)
        ]

    def align_output(self, text: str, output: LensOutput) -> LensOutput:
        """Return the output with the word alignment of its answer and the text that the model read."""
        (links,) = self.align([text], [output.answer])
        sources, targets = split_words(text).spans, split_words(output.answer).spans
        return replace(output, alignment=tuple(AlignedSpans(sources[i], targets[j]) for i, j in links))

    def _links(self, example: Example) -> set[Link]:
        try:
            encoded_examples = encode_examples(self.task, [example]).examples
        except LensError:
            return set()
        maps = _maps(self.task.model, encoded_examples)[0]
        merged = np.mean([maps[head][self.variant] for head in self.heads], axis=0)
        return argmax_links(merged[None])[0]


@dataclass(frozen=True)
class OcclusionAligner:
    """Aligns every text by occlusion, without chosen heads: slower, but it needs no data to choose by."""

    task: Task

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        parts: Sequence[Sequence[tuple[int, int, int, int]]] | None = None,
    ) -> list[list[Link]]:
        """Return the sorted links between the words of each pair of texts, as `Aligner.align` does."""
        parts = [()] * len(sources) if parts is None else parts
        return [
            align_parts(source, target, own, self._links)
            for source, target, own in zip(sources, targets, parts, strict=True)
        ]

    def _links(self, example: Example) -> set[Link]:
        try:
            (encoded,) = encode_examples(self.task, [example]).examples
        except LensError:
            return set()
        return occlusion_links(self.task.model, encoded)


def align_parts(
    source: str,
    target: str,
    parts: Sequence[tuple[int, int, int, int]],
    align: Callable[[Example], Iterable[Link]],
) -> list[Link]:
    """Return the sorted links of a pair whose parts, or which as a whole, are aligned by `align`."""
    sides = split_words(source), split_words(target)
    links: list[Link] = []
    for part in parts or [(0, len(source), 0, len(target))]:
        (source_part, n_source), (target_part, n_target) = _cut(sides[0], *part[:2]), _cut(sides[1], *part[2:])
        if source_part.words and target_part.words:
            links += [(i + n_source, j + n_target) for i, j in align(Example((source_part, target_part)))]
    return sorted(links)


def split_words(text: str) -> Rendering:
    """Split a text into words: punctuation separately, each Chinese character or kana as one word."""
    words = split_text(text, "word")
    return Rendering(text, tuple(word.text for word in words), tuple((word.start, word.end) for word in words), ())


def _cut(text: Rendering, start: int, end: int) -> tuple[Rendering, int]:
    """Return a part of a text with the words in it, and the number of words before it."""
    first = bisect_left(text.spans, (start, start))
    last = bisect_right(text.spans, end, lo=first, key=lambda span: span[1])
    spans = tuple((span[0] - start, span[1] - start) for span in text.spans[first:last])
    return Rendering(text.text[start:end], text.words[first:last], spans, ()), first


def require_cross_attention(bundle: Bundle, where: str) -> Task:
    """Return the bundle's task; raise `LensError` if its model has no cross-attention."""
    if not bundle.task.model.settings.has_cross_attention:
        raise LensError(
            _(
                "{where} is a bundle of task {kind} and has no cross-attention. Only seq2seq bundles have it.",
                where=where,
                kind=bundle.kind,
            )
        )
    return bundle.task


def choose_aligner(bundle: Bundle, where: str, pairs: Sequence[tuple[str, str]] = ()) -> Aligner:
    """Return the aligner of a bundle, chosen on its held-out data, or on these pairs if that is not available."""
    task = require_cross_attention(bundle, where)
    try:
        examples = sample_examples(bundle, _N_CHOOSING)
    except LensError:
        examples = [Example((split_words(source), split_words(target))) for source, target in pairs[:_N_CHOOSING]]
    if not all(example.has_gold_alignment for example in examples):
        examples = [Example(tuple(split_words(side.text) for side in example.texts)) for example in examples]
    return fit_aligner(task, encode_examples(task, examples).examples)


def fit_aligner(task: Task, encoded_examples: Sequence[EncodedExample]) -> Aligner:
    """Choose the heads, at most four together, whose links agree best with gold or, without gold, with occlusion."""
    has_gold = all(encoded.example.has_gold_alignment for encoded in encoded_examples)
    references = [
        set(encoded.example.sure or ()) if has_gold else occlusion_links(task.model, encoded)
        for encoded in encoded_examples
    ]
    maps = _maps(task.model, encoded_examples)
    best: tuple[float, tuple[str, ...], str] = (-1.0, (), ALIGNMENT_VARIANTS[0])
    for variant in ALIGNMENT_VARIANTS:
        single = {head: _agreement([own[head][variant] for own in maps], references) for head in maps[0]}
        ranked = sorted(single, key=lambda head: -single[head])
        for n_heads in range(1, min(_MAX_HEADS, len(ranked)) + 1):
            chosen = tuple(ranked[:n_heads])
            merged = [np.mean([own[head][variant] for head in chosen], axis=0) for own in maps]
            score = single[chosen[0]] if n_heads == 1 else _agreement(merged, references)
            if score > best[0]:
                best = (score, chosen, variant)
    return Aligner(task, best[1], best[2], best[0], "gold" if has_gold else "occlusion", len(encoded_examples))


def _agreement(maps: Sequence[Floats], references: Sequence[set[Link]]) -> float:
    """Return 1 − AER of one map per text."""
    correct = total = 0.0
    for words, links in zip(maps, references, strict=True):
        own_correct, own_total = count_links(words[None], links, links)
        correct, total = correct + float(own_correct[0]), total + float(own_total[0])
    return correct / total if total else 0.0


def _maps(model: Transformer, encoded_examples: Sequence[EncodedExample]) -> list[dict[str, dict[str, Floats]]]:
    """Return the maps between words of each text, by head and variant."""
    word_maps: list[dict[str, dict[str, Floats]]] = [{} for _ in encoded_examples]

    def keep(number: int, name: str, weights: Floats, norms: Floats) -> None:
        if kind_of(name) != "decoder.cross":
            return
        for variant, maps in aligned_maps(weights, norms, encoded_examples[number]).items():
            for head, words in enumerate(maps):
                word_maps[number].setdefault(f"{name}/{head}", {})[variant] = words

    for_each_map(model, encoded_examples, keep)
    return word_maps


@torch.inference_mode()
def occlusion_links(model: Transformer, encoded: EncodedExample) -> set[Link]:
    """Link each target word to the source word whose absence lowers its probability most, by half or more."""
    source, target = encoded.sides
    device = model.device
    ids = torch.from_numpy(source.ids)[None].to(device)
    read = torch.from_numpy(target.ids)[None].to(device)
    memory = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    n_words = source.shares.shape[1]
    visible = torch.from_numpy(np.concatenate([np.ones((1, len(source.ids)), bool), ~(source.shares.T > 0)])).to(device)
    rows = n_words + 1
    state = DecoderState(memory.expand(rows, -1, -1), visible, torch.ones(rows, 0, dtype=torch.bool, device=device), [])
    logits = model.output.logits(model.decode(read.expand(rows, -1), state))
    written = torch.cat([read[0, 1:], torch.tensor([EOS], device=device)])
    logs = logits.log_softmax(-1).gather(-1, written.expand(rows, -1)[..., None])[..., 0]
    drops = (logs[:1] - logs[1:]).cpu().double().numpy() @ target.next_shares  # source words × target words
    largest = drops.argmax(0)
    return {
        (int(source_word), word) for word, source_word in enumerate(largest) if drops[source_word, word] >= _MIN_DROP
    }


def aligner_of(bundle: Bundle) -> Aligner | OcclusionAligner:
    """Return the aligner of a bundle that does not depend on the texts to align.

    Alignment heads are chosen on the bundle's held-out data. Without that data, every text is aligned by occlusion.
    """
    task = require_cross_attention(bundle, "This")
    try:
        return choose_aligner(bundle, "the bundle")
    except (ManyheadsError, OSError):  # its validation data is not on this machine
        return OcclusionAligner(task)
