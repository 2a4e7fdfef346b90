"""`Aligner`: word alignments as a by-product of translating, from the cross-attention heads that align best.

Which heads these are is found when it is asked for (docs/decisions/0015): by gold where the bundle's own corpus has
it, else by what the model's predictions depend on. For the latter every word of a source is hidden in turn from all
cross-attention; a target word belongs to the source word without which it becomes the least probable. That needs no
gold, but a pass for each word: heads are chosen by it, on a few sentences, and then align in one pass.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from manyheads.bundle import Bundle
from manyheads.corpora import Rendering
from manyheads.errors import LensError
from manyheads.lens.alignment import VARIANTS, aligned_maps, argmax_links, count_links
from manyheads.lens.encoded_examples import EncodedExample, Floats, encode_examples
from manyheads.lens.examples import Example, sample_examples
from manyheads.lens.head_counts import for_each_map, kind_of
from manyheads.model import Transformer
from manyheads.model.transformer import DecoderState
from manyheads.tasks import Seq2Seq
from manyheads.text.gold_alignments import Link
from manyheads.text.tokenizer import EOS
from manyheads.text.words import split_text

_CHOSEN_BY = 60  # sentences
_MOST_HEADS = 4  # whose maps are averaged
_LEAST_DROP = math.log(2)  # nats: a word that matters makes another at least half as probable when it is hidden


@dataclass(frozen=True)
class Aligner:
    """The heads that align, how their maps are read, and how well they did where they were chosen."""

    task: Seq2Seq
    heads: tuple[str, ...]
    variant: str  # "align weights written": which strength, and which of the two tokens a row speaks of
    agreement: float  # 1 − AER against what they were chosen by
    chosen_by: str  # gold, or hiding
    n_texts: int

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[Link]]:
        """The links of each pair of texts between their words, as `split_words` counts them, sorted."""
        examples = [
            Example((split_words(source), split_words(target))) for source, target in zip(sources, targets, strict=True)
        ]
        whole = [number for number, pair in enumerate(examples) if all(side.words for side in pair.texts)]
        links: list[list[Link]] = [[] for _ in examples]
        if not whole:
            return links
        for number in whole:
            # One by one: a pair too long for the decoder to read again has no links, but the others do.
            links[number] = self._links(examples[number])
        return links

    def _links(self, example: Example) -> list[Link]:
        try:
            encoded_examples = encode_examples(self.task, [example]).examples
        except LensError:
            return []
        maps = _maps(self.task.model, encoded_examples)[0]
        merged = np.mean([maps[head][self.variant] for head in self.heads], axis=0)
        return sorted(argmax_links(merged[None])[0])


def split_words(text: str) -> Rendering:
    """A text with its words: punctuation apart, each Chinese character or kana by itself."""
    words = split_text(text, "word")
    return Rendering(text, tuple(word.text for word in words), tuple((word.start, word.end) for word in words), ())


def require_cross_attention(bundle: Bundle, where: str) -> Seq2Seq:
    """The bundle's task, if it has cross-attention to align by."""
    if not isinstance(bundle.task, Seq2Seq):
        raise LensError(
            f"{where} is of task {bundle.kind} and has no cross-attention: only a model that writes one text for "
            "another can align them."
        )
    return bundle.task


def choose_aligner(bundle: Bundle, where: str, pairs: Sequence[tuple[str, str]] = ()) -> Aligner:
    """The aligner of a bundle: chosen on its own held-out text, or on these pairs where that is no longer there."""
    task = require_cross_attention(bundle, where)
    try:
        examples = sample_examples(bundle, _CHOSEN_BY)
    except LensError:
        examples = [Example((split_words(source), split_words(target))) for source, target in pairs[:_CHOSEN_BY]]
    if not all(example.has_gold_alignment for example in examples):
        examples = [Example(tuple(split_words(side.text) for side in example.texts)) for example in examples]
    return fit_aligner(task, encode_examples(task, examples).examples)


def fit_aligner(task: Seq2Seq, encoded_examples: Sequence[EncodedExample]) -> Aligner:
    """The heads, up to a few together, whose links agree best with gold or, without it, with what hiding tells."""
    has_gold = all(encoded.example.has_gold_alignment for encoded in encoded_examples)
    wanted = [
        set(encoded.example.sure or ()) if has_gold else occlusion_links(task.model, encoded)
        for encoded in encoded_examples
    ]
    maps = _maps(task.model, encoded_examples)
    best: tuple[float, tuple[str, ...], str] = (-1.0, (), VARIANTS[0])
    for variant in VARIANTS:
        alone = {head: _agreement([own[head][variant] for own in maps], wanted) for head in maps[0]}
        ranked = sorted(alone, key=lambda head: -alone[head])
        for n_heads in range(1, min(_MOST_HEADS, len(ranked)) + 1):
            chosen = tuple(ranked[:n_heads])
            merged = [np.mean([own[head][variant] for head in chosen], axis=0) for own in maps]
            score = alone[chosen[0]] if n_heads == 1 else _agreement(merged, wanted)
            if score > best[0]:
                best = (score, chosen, variant)
    return Aligner(task, best[1], best[2], best[0], "gold" if has_gold else "hiding", len(encoded_examples))


def _agreement(maps: Sequence[Floats], wanted: Sequence[set[Link]]) -> float:
    """1 − AER of one map a text."""
    right = given = 0.0
    for words, links in zip(maps, wanted, strict=True):
        own_right, own_given = count_links(words[None], links, links)
        right, given = right + float(own_right[0]), given + float(own_given[0])
    return right / given if given else 0.0


def _maps(model: Transformer, encoded_examples: Sequence[EncodedExample]) -> list[dict[str, dict[str, Floats]]]:
    """Of each text, by head and variant, the map between words."""
    found: list[dict[str, dict[str, Floats]]] = [{} for _ in encoded_examples]

    def keep(number: int, name: str, weights: Floats, norms: Floats) -> None:
        if kind_of(name) != "decoder.cross":
            return
        for variant, maps in aligned_maps(weights, norms, encoded_examples[number]).items():
            for head, words in enumerate(maps):
                found[number].setdefault(f"{name}/{head}", {})[variant] = words

    for_each_map(model, encoded_examples, keep)
    return found


@torch.inference_mode()
def occlusion_links(model: Transformer, encoded: EncodedExample) -> set[Link]:
    """The links that hiding tells: each target word's source word without which it becomes the least probable."""
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
    drops = (logs[:1] - logs[1:]).double().cpu().numpy() @ target.next_shares  # source words × target words
    aims = drops.argmax(0)
    return {(int(aim), word) for word, aim in enumerate(aims) if drops[aim, word] >= _LEAST_DROP}
