"""`learn_shortlist`: which words are written for which, by the heads that align, so that not all have to be thought of.

Every token of a training target is shared out among the source tokens that the aligning heads look at most there. What
is written often for whatever reason may always be written; of the rest each source token keeps what was written for it
most often, and itself: names are copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from time import process_time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.compress.trade_off import MAX_BLEU_DROP, TradeOff, measure_trade_off
from manyheads.data import pad
from manyheads.decode import EngineSelector, Shortlist
from manyheads.errors import BundleError, DataError, EngineError
from manyheads.lens.aligner import Aligner, choose_aligner, require_cross_attention
from manyheads.lens.head_counts import MapTap
from manyheads.model import MultiHeadAttention, evaluating
from manyheads.settings import raise_faults
from manyheads.tasks.model_inputs import batches_by_length
from manyheads.text.readers import Row
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK

_LOOKED_AT = 4  # source tokens that a target token is shared out among

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ShortlistSettings:
    """How long a list may become."""

    words: int = 50  # that each source token brings
    frequent: int = 100  # that are always there

    def __post_init__(self) -> None:
        raise_faults(
            [
                f"--{name} {getattr(self, name)} must be at least {least}."
                for name, least in (("words", 1), ("frequent", 0))
                if getattr(self, name) < least
            ]
        )


@dataclass(frozen=True)
class ShortlistReport:
    """What a shortlist was learnt from, and what came of it."""

    heads: Sequence[str]
    n_pairs: int
    engine: str
    mean_tokens: float  # in the list of one sentence
    vocab_size: int
    alone: TradeOff  # each sentence with its own list: the shortest, and the dearest
    together: TradeOff


def add_shortlist(
    bundle: Bundle, where: str, train: Sequence[Row], valid: Sequence[Row], settings: ShortlistSettings
) -> tuple[Bundle, ShortlistReport]:
    """The bundle with a shortlist learnt from `train`; refused where it costs too much on `valid`."""
    task = require_cross_attention(bundle, where)
    if bundle.shortlist is not None:
        raise BundleError(f"{where} has a shortlist already. Give the bundle it was made from.")
    aligner = choose_aligner(bundle, where, [(row[0], row[1]) for row in train])
    shortlist = learn_shortlist(aligner, train, settings)
    is_int8 = bundle.int8 is not None
    whole = task.with_engine(EngineSelector("native", is_int8=is_int8))
    listed = task.with_engine(EngineSelector("native", is_int8=is_int8, shortlist=shortlist))
    engine = whole.engine_for(bundle.decode).name
    if engine == "torch":
        raise EngineError(f"Only the native engine supports shortlists. {whole.engine.fallback}")
    trade_offs = [
        measure_trade_off(whole, listed, valid, bundle.decode, at_once=at_once, clock=process_time)
        for at_once in (1, len(valid))
    ]
    trade_off = max(trade_offs, key=lambda trade_off: trade_off.bleu_drop)
    if trade_off.bleu_drop > MAX_BLEU_DROP:
        raise BundleError(
            f"This shortlist would cost {trade_off.bleu_drop:.2f} BLEU ({trade_off.before:.2f} → {trade_off.after:.2f} on "
            f"{trade_off.n_sentences} sentences); more than {MAX_BLEU_DROP} is refused. Learn from more pairs (--sample, "
            f"--train) or keep more words (--words {2 * settings.words})."
        )
    sizes = [len(shortlist.allowed(np.array([*task.tokenizer.encode(row[0]), EOS], dtype=np.int32))) for row in valid]
    report = ShortlistReport(
        heads=aligner.heads,
        n_pairs=len(train),
        engine=engine,
        mean_tokens=float(np.mean(sizes)),
        vocab_size=task.tokenizer.vocab_size,
        alone=trade_offs[0],
        together=trade_offs[1],
    )
    fast = EngineSelector("auto", is_int8=is_int8, shortlist=shortlist)
    metadata = asdict(settings) | asdict(report) | {"heads": list(aligner.heads)}
    return replace(bundle, shortlist=shortlist, shortlist_cost=metadata, engine=fast), report


def learn_shortlist(aligner: Aligner, rows: Sequence[Row], settings: ShortlistSettings) -> Shortlist:
    """The table that these pairs teach."""
    vocab_size = aligner.task.tokenizer.vocab_size
    links = _Links.joined(_each_links(aligner, rows))
    often = np.bincount(links.targets, weights=links.shares, minlength=vocab_size)
    often[[PAD, UNK, BOS, EOS]] = 0
    ranked = np.argsort(-often, kind="stable")[: settings.frequent]
    always = {EOS, *ranked[often[ranked] > 0].tolist()}
    is_other = ~np.isin(links.targets, list(always)) & (links.shares > 0)
    pairs, number = np.unique((links.sources * vocab_size + links.targets)[is_other], return_inverse=True)
    counts = np.bincount(number, weights=links.shares[is_other], minlength=len(pairs))
    lists = [[token] for token in range(vocab_size)]
    for pair in pairs[np.lexsort((pairs, -counts))].tolist():
        source, target = divmod(pair, vocab_size)
        if len(lists[source]) <= settings.words and target != source:
            lists[source].append(target)
    return Shortlist.from_lists(lists, sorted(always))


@dataclass(frozen=True, eq=False)
class _Links:
    """Which target token belongs to which source token, and how much of it."""

    sources: Ids
    targets: Ids
    shares: Floats

    @classmethod
    def joined(cls, parts: Iterable["_Links"]) -> "_Links":
        found = list(parts)
        return cls(
            np.concatenate([part.sources for part in found]),
            np.concatenate([part.targets for part in found]),
            np.concatenate([part.shares for part in found]),
        )


def _each_links(aligner: Aligner, rows: Sequence[Row]) -> Iterator[_Links]:
    """The links of each batch."""
    task = aligner.task
    most = task.model.settings.max_length
    sides = [task.tokenizer.encode_batch([row[side] for row in rows]) for side in (0, 1)]
    pairs = [(source, target) for source, target in zip(*sides, strict=True) if max(len(source), len(target)) < most]
    if not pairs:
        raise DataError(f"None of {len(rows):,} pairs is short enough for this model: there is nothing to learn from.")
    for batch in batches_by_length([len(source) + len(target) for source, target in pairs]):
        with evaluating(task.model):
            links = _align(aligner, [pairs[row] for row in batch])
        yield links


def _align(aligner: Aligner, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> _Links:
    """The links of one batch; those of what pads a text, and of BOS, are left out."""
    source = pad([pair[0] for pair in pairs], after=EOS)
    target = pad([pair[1] for pair in pairs], before=BOS, after=EOS)
    is_read = ~np.isin(target[:, :-1], (PAD, EOS))
    read, written = np.where(is_read, target[:, :-1], PAD), target[:, 1:]
    strengths = _strengths(aligner, torch.from_numpy(source), torch.from_numpy(read)).numpy()
    # Heads that find nothing to look at rest on EOS: what little they see elsewhere tells more.
    strengths = np.where(np.isin(source, (PAD, EOS))[:, None], 0.0, strengths)
    n_kept = min(_LOOKED_AT, strengths.shape[-1])
    places = np.argpartition(-strengths, n_kept - 1, axis=-1)[..., :n_kept]
    shares = np.take_along_axis(strengths, places, axis=-1)
    total = shares.sum(-1, keepdims=True)
    shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    meant = read if aligner.variant.endswith("read") else written
    is_word = is_read & ~np.isin(meant, (PAD, BOS))
    return _Links(
        sources=np.take_along_axis(source[:, None], places, axis=-1)[is_word].ravel(),
        targets=np.repeat(meant[is_word], n_kept),
        shares=shares[is_word].astype(np.float64).ravel(),
    )


def _strengths(aligner: Aligner, source: Tensor, read: Tensor) -> Tensor:
    """B × Q × K: how much the aligning heads look at each source token, all of them together."""
    model = aligner.task.model
    total = torch.zeros(*read.shape, source.size(1))

    def receive(attention: MultiHeadAttention, weights: Tensor, norms: Tensor) -> None:
        chosen = weights if "weights" in aligner.variant else norms
        for head in range(chosen.size(1)):
            if f"{attention.name}/{head}" in aligner.heads:
                total.add_(chosen[:, head].cpu())

    device = model.device
    source, read = source.to(device), read.to(device)
    model.hidden(source, read, source_is_real=source != PAD, target_is_real=read != PAD, tap=MapTap(model, receive))
    return total
