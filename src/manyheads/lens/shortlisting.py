"""`learn_shortlist`: which words are written for which, by the heads that align, so that not all have to be thought of.

Every piece of a training target belongs to the source piece that the aligning heads look at most there. What is
written often for whatever reason may always be written; of the rest each source piece keeps what was written for it
most often, and itself: names are copied.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.data import pad
from manyheads.decode import Shortlist
from manyheads.errors import BundleError, EngineError
from manyheads.lens.aligner import Aligner, choose_aligner, refuse_without_cross
from manyheads.lens.watching import MapTap
from manyheads.model import Transformer
from manyheads.model.attention import MultiHeadAttention
from manyheads.recipe.trading import MOST_LOST, Trade, measure
from manyheads.settings import refuse
from manyheads.tasks import Seq2Seq
from manyheads.tasks.reading import like_lengths
from manyheads.text.readers import Row
from manyheads.text.tokenizer import BEGIN, END, PAD, UNKNOWN

_ALONE = 100  # sentences that are asked for one by one
_TURNS = 3

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ShortlistSettings:
    """How long a list may become."""

    words: int = 50  # that each source piece brings
    frequent: int = 100  # that are always there

    def __post_init__(self) -> None:
        refuse(
            [
                f"--{name} {getattr(self, name)} must be at least {least}."
                for name, least in (("words", 1), ("frequent", 0))
                if getattr(self, name) < least
            ]
        )


@dataclass(frozen=True)
class Shortened:
    """What a shortlist was learnt from, and what came of it."""

    heads: Sequence[str]
    n_pairs: int
    engine: str
    mean_words: float  # in the list of one sentence
    vocabulary: int
    speed_alone: float  # of sentences asked for one by one, to those without a list
    trade: Trade


def shorten(
    bundle: Bundle, where: str, train: Sequence[Row], valid: Sequence[Row], settings: ShortlistSettings
) -> tuple[Bundle, Shortened]:
    """The bundle with a shortlist learnt from `train`; refused where it costs too much on `valid`."""
    task = refuse_without_cross(bundle, where)
    if bundle.shortlist is not None:
        raise BundleError(f"{where} has a shortlist already. Give the bundle it was made from.")
    aligner = choose_aligner(bundle, where, [(row[0], row[1]) for row in train])
    shortlist = learn_shortlist(aligner, train, settings)
    told: list[str] = []
    whole = task.answering("native", tell=told.append, is_int8=bundle.int8 is not None)
    listed = task.answering("native", is_int8=bundle.int8 is not None, shortlist=shortlist)
    assert whole.engine is not None
    engine = whole.engine.choose(bundle.decode).name
    if engine == "reference":
        raise EngineError(f"Only the native engine knows shortlists. {' '.join(told)}".strip())
    trade = measure(whole, listed, valid, bundle.decode)
    if trade.lost > MOST_LOST:
        raise BundleError(
            f"This shortlist would cost {trade.lost:.2f} BLEU ({trade.before:.2f} → {trade.after:.2f} on "
            f"{trade.n_sentences} sentences); more than {MOST_LOST} is refused. Learn from more pairs (--sample, "
            f"--train) or keep more words (--words {2 * settings.words})."
        )
    sizes = [len(shortlist.of(np.array([*task.tokenizer.encode(row[0]), END], dtype=np.int32))) for row in valid]
    shortened = Shortened(
        heads=aligner.heads,
        n_pairs=len(train),
        engine=engine,
        mean_words=float(np.mean(sizes)),
        vocabulary=task.tokenizer.vocabulary,
        speed_alone=_speed_alone(bundle, whole, listed, [row[0] for row in valid[:_ALONE]]),
        trade=trade,
    )
    return replace(bundle, shortlist=shortlist, shortened=_facts(shortened, settings), swift=None), shortened


def _facts(shortened: Shortened, settings: ShortlistSettings) -> dict[str, Any]:
    """What bundle.json says of it."""
    facts = asdict(shortened)
    return asdict(settings) | facts.pop("trade") | facts | {"heads": list(shortened.heads)}


def _speed_alone(bundle: Bundle, whole: Seq2Seq, listed: Seq2Seq, texts: Sequence[str]) -> float:
    """How much sooner one has a translation, at the median."""
    ratios = []
    for text in texts:
        seconds = [0.0, 0.0]
        for _ in range(_TURNS):
            for side, task in enumerate((whole, listed)):
                started = perf_counter()
                task.predict([text], bundle.decode)
                seconds[side] += perf_counter() - started
        ratios.append(seconds[0] / seconds[1])
    return float(np.median(ratios))


def learn_shortlist(aligner: Aligner, rows: Sequence[Row], settings: ShortlistSettings) -> Shortlist:
    """The table that these pairs teach."""
    vocabulary = aligner.task.tokenizer.vocabulary
    links = np.concatenate([np.zeros((2, 0), dtype=np.int64), *_links(aligner, rows)], axis=1)
    often = np.bincount(links[1], minlength=vocabulary)
    often[[PAD, UNKNOWN, BEGIN, END]] = 0
    ranked = np.argsort(-often, kind="stable")[: settings.frequent]
    always = {END, *ranked[often[ranked] > 0].tolist()}
    is_other = ~np.isin(links[1], list(always))
    pairs, counts = np.unique(links[0, is_other] * vocabulary + links[1, is_other], return_counts=True)
    lists = [[piece] for piece in range(vocabulary)]
    for pair in pairs[np.lexsort((pairs, -counts))].tolist():
        source, target = divmod(pair, vocabulary)
        if len(lists[source]) <= settings.words and target != source:
            lists[source].append(target)
    return Shortlist.from_lists(lists, sorted(always))


def _links(aligner: Aligner, rows: Sequence[Row]) -> Iterator[Ids]:
    """Of each batch, the source pieces and the target pieces that belong to them."""
    task = aligner.task
    most = task.model.settings.max_length
    sides = [task.tokenizer.encode_many([row[side] for row in rows]) for side in (0, 1)]
    pairs = [(source, target) for source, target in zip(*sides, strict=True) if max(len(source), len(target)) < most]
    was_training = task.model.training
    task.model.eval()
    try:
        for batch in like_lengths([len(source) + len(target) for source, target in pairs]):
            with torch.inference_mode():
                yield _align(aligner, [pairs[row] for row in batch])
    finally:
        task.model.train(was_training)


def _align(aligner: Aligner, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Ids:
    """The links of one batch; those of what pads a text, and of BEGIN, are left out."""
    model = aligner.task.model
    source, read, written = (
        pad([np.array([*before, *ids, *after], dtype=np.int64) for ids in side])
        for side, before, after in (
            ([pair[0] for pair in pairs], (), (END,)),
            ([pair[1] for pair in pairs], (BEGIN,), ()),
            ([pair[1] for pair in pairs], (), (END,)),
        )
    )
    strengths = _strengths(aligner, model, torch.from_numpy(source), torch.from_numpy(read))
    aims = np.take_along_axis(source, strengths.argmax(-1).cpu().numpy(), axis=1)
    meant = read if aligner.variant.endswith("read") else written
    is_word = ~np.isin(meant, (PAD, BEGIN)) & (read != PAD)
    return np.stack([aims[is_word], meant[is_word]])


def _strengths(aligner: Aligner, model: Transformer, source: Tensor, read: Tensor) -> Tensor:
    """B × Q × K: how much the aligning heads look at each source piece, all of them together."""
    total = torch.zeros(*read.shape, source.size(1))

    def receive(attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        chosen = weights if "weights" in aligner.variant else norms
        for head in range(chosen.size(1)):
            if f"{attention.name}/{head}" in aligner.heads:
                total.add_(chosen[:, head].cpu())

    device = model.output.weight.device
    source, read = source.to(device), read.to(device)
    model.hidden(source, read, source_is_real=source != PAD, target_is_real=read != PAD, tap=MapTap(model, receive))
    return total
