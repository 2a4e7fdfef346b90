"""`add_shortlist`: a seq2seq bundle that scores only likely target tokens, with the measured cost.

Each target token of the training data is divided among the source tokens that the alignment heads attend to most. The
most frequent target tokens are always allowed. Of the others, each source token allows those it was linked to most
often, and itself, since names are copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from time import process_time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.compress.trade_off import MAX_COST, Compressed, TradeOff, measure_trade_off, require_small_cost
from manyheads.data import pad
from manyheads.decode import EngineSelector, Shortlist
from manyheads.errors import BundleError, DataError, EngineError
from manyheads.lens.aligner import Aligner, choose_aligner, require_cross_attention
from manyheads.lens.roles.head_counts import MapTap
from manyheads.messages import _
from manyheads.model import MultiHeadAttention, evaluating
from manyheads.settings import raise_faults
from manyheads.tasks import PairTask
from manyheads.tasks.model_inputs import batches_by_length
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

_N_SOURCES = 4  # source tokens that a target token is divided among

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ShortlistSettings:
    """The size of a shortlist."""

    words: int = 50  # target tokens allowed by each source token
    frequent: int = 100  # target tokens that are always allowed

    def __post_init__(self) -> None:
        raise_faults(
            [
                _("--{option} {value} must be at least {least}.", option=name, value=getattr(self, name), least=least)
                for name, least in (("words", 1), ("frequent", 0))
                if getattr(self, name) < least
            ]
        )


@dataclass(frozen=True)
class ShortlistReport:
    """The data of a shortlist, its size, and its trade-off for single sentences and for one large batch."""

    heads: Sequence[str]
    n_pairs: int
    engine: str
    mean_tokens: float  # in the list of one sentence
    vocab_size: int
    single: TradeOff  # one sentence at a time, each with its own list: the shortest lists, with the highest cost
    batch: TradeOff


def add_shortlist(
    bundle: Bundle,
    where: str,
    train: Sequence[Row],
    valid: Sequence[Row],
    settings: ShortlistSettings,
    max_cost: float = MAX_COST,
) -> Compressed[ShortlistReport]:
    """Learn a shortlist from `train` and measure its cost on `valid`; more than `max_cost` is refused."""
    task = require_cross_attention(bundle, where)
    if not isinstance(task, PairTask):
        raise BundleError(
            _(
                "Only seq2seq bundles can have a shortlist; {where} is a bundle of task {kind}.",
                where=where,
                kind=bundle.kind,
            )
        )
    if bundle.shortlist is not None:
        raise BundleError(_("{where} already has a shortlist. Give the bundle it was made from.", where=where))
    aligner = choose_aligner(bundle, where, [(row[0], row[1]) for row in train])
    shortlist = learn_shortlist(aligner, train, settings)
    is_int8 = bundle.int8 is not None
    selector = EngineSelector("native", is_int8=is_int8, is_silent=True)
    unlisted = task.with_engine(selector)
    listed = task.with_engine(EngineSelector("native", is_int8=is_int8, shortlist=shortlist))
    engine = unlisted.engine_for(bundle.decode).name
    if engine == "torch":
        raise EngineError(_("Only the native engine supports shortlists. {fallback}", fallback=selector.fallback))
    single, batch = (
        measure_trade_off(unlisted, listed, valid, bundle.decode, batch_rows=batch_rows, clock=process_time)
        for batch_rows in (1, len(valid))
    )
    costlier = max(single, batch, key=lambda trade_off: trade_off.change.cost)
    advice = _(
        "Learn from more pairs (--train-sample, --train) or allow more tokens (--words {words}).",
        words=2 * settings.words,
    )
    require_small_cost(costlier.change, _("This shortlist"), advice, max_cost)
    sizes = [len(shortlist.allowed(np.array([*task.tokenizer.encode(row[0]), EOS], dtype=np.int32))) for row in valid]
    report = ShortlistReport(
        heads=aligner.heads,
        n_pairs=len(train),
        engine=engine,
        mean_tokens=float(np.mean(sizes)),
        vocab_size=task.tokenizer.vocab_size,
        single=single,
        batch=batch,
    )
    metadata = asdict(settings) | asdict(report) | {"heads": list(aligner.heads)}
    engine_selector = EngineSelector("auto", is_int8=is_int8, shortlist=shortlist)
    fast = replace(bundle, shortlist=shortlist, shortlist_cost=metadata, engine=engine_selector)
    return Compressed(fast, costlier, report)


def learn_shortlist(aligner: Aligner, rows: Sequence[Row], settings: ShortlistSettings) -> Shortlist:
    """Learn a shortlist from pairs of texts."""
    vocab_size = aligner.task.tokenizer.vocab_size
    links = _Links.concatenate(_batch_links(aligner, rows))
    frequencies = np.bincount(links.targets, weights=links.shares, minlength=vocab_size)
    frequencies[[PAD, UNK, BOS, EOS]] = 0
    ranked = np.argsort(-frequencies, kind="stable")[: settings.frequent]
    always = {EOS, *ranked[frequencies[ranked] > 0].tolist()}
    is_other = ~np.isin(links.targets, list(always)) & (links.shares > 0)
    pairs, inverse = np.unique((links.sources * vocab_size + links.targets)[is_other], return_inverse=True)
    counts = np.bincount(inverse, weights=links.shares[is_other], minlength=len(pairs))
    lists = [[token] for token in range(vocab_size)]
    for pair in pairs[np.lexsort((pairs, -counts))].tolist():
        source, target = divmod(pair, vocab_size)
        if len(lists[source]) <= settings.words and target != source:
            lists[source].append(target)
    return Shortlist.from_lists(lists, sorted(always))


@dataclass(frozen=True, eq=False)
class _Links:
    """Weighted links between token ids: how much of each target token belongs to a source token."""

    sources: Ids
    targets: Ids
    shares: Floats

    @classmethod
    def concatenate(cls, parts: Iterable["_Links"]) -> "_Links":
        links = list(parts)
        return cls(
            np.concatenate([part.sources for part in links]),
            np.concatenate([part.targets for part in links]),
            np.concatenate([part.shares for part in links]),
        )


def _batch_links(aligner: Aligner, rows: Sequence[Row]) -> Iterator[_Links]:
    """Yield the links of each batch of the rows that fit the model."""
    task = aligner.task
    max_length = task.model.settings.max_length
    sides = task.encode_rows(rows, task.tokenizer, task.settings)
    pairs = [
        (source, target) for source, target in zip(*sides, strict=True) if max(map(len, (source, target))) < max_length
    ]
    if not pairs:
        raise DataError(
            _(
                "None of the {n_rows:,} pairs is short enough for this model, so no shortlist can be learned.",
                n_rows=len(rows),
            )
        )
    for batch in batches_by_length([len(source) + len(target) for source, target in pairs]):
        with evaluating(task.model):
            links = _align(aligner, [pairs[row] for row in batch])
        yield links


def _align(aligner: Aligner, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> _Links:
    """Return the links of one batch, without those of padding and BOS."""
    source = pad([pair[0] for pair in pairs], after=EOS)
    target = pad([pair[1] for pair in pairs], before=BOS, after=EOS)
    is_read = ~np.isin(target[:, :-1], (PAD, EOS))
    read, written = np.where(is_read, target[:, :-1], PAD), target[:, 1:]
    strengths = _strengths(aligner, torch.from_numpy(source), torch.from_numpy(read)).numpy()
    # A head without a match puts its weight on EOS; the small weights elsewhere are more informative.
    strengths = np.where(np.isin(source, (PAD, EOS))[:, None], 0.0, strengths)
    n_kept = min(_N_SOURCES, strengths.shape[-1])
    positions = np.argpartition(-strengths, n_kept - 1, axis=-1)[..., :n_kept]
    shares = np.take_along_axis(strengths, positions, axis=-1)
    total = shares.sum(-1, keepdims=True)
    shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    aligned = read if aligner.variant.endswith("read") else written
    is_aligned = is_read & ~np.isin(aligned, (PAD, BOS))
    return _Links(
        sources=np.take_along_axis(source[:, None], positions, axis=-1)[is_aligned].ravel(),
        targets=np.repeat(aligned[is_aligned], n_kept),
        shares=shares[is_aligned].astype(np.float64).ravel(),
    )


def _strengths(aligner: Aligner, source: Tensor, read: Tensor) -> Tensor:
    """Return the summed weights or norms of the alignment heads, B × Q × K."""
    model = aligner.task.model
    total = torch.zeros(*read.shape, source.size(1))

    def receive(attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        chosen = weights if "weights" in aligner.variant else norms
        for head in range(chosen.size(1)):
            if f"{attention.name}/{head}" in aligner.heads:
                total.add_(chosen[:, head].cpu())

    source, read = source.to(model.device), read.to(model.device)
    model.hidden(source, read, source_is_real=source != PAD, target_is_real=read != PAD, tap=MapTap(model, receive))
    return total
