"""A linear-chain CRF on sparse features: the baseline of a tagger, and a part of its answer.

It is fitted in seconds to a minute, before the Transformer is trained, and is hard to beat on names that the training
texts contain. Trained apart, the two make different errors, so that the sum of their scores is better than either.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tasks.tag.crf import CRF, States
from manyheads.tasks.tag.tag_features import NO_FEATURE, Hashes, text_columns, word_features

_N_EPOCHS = 3
_LEARNING_RATE = 0.1
_DROPOUT = 0.1  # of features
_BATCH_WORDS = 1500
_N_INTENT_EPOCHS = 10
_INTENT_LEARNING_RATE = 0.5
_BATCH_TEXTS = 64
_FIRST_SQUARES = 1e-4  # of AdaGrad's sums
_SEED = 1
_MAX_WORDS, _MAX_CHARACTERS = 500_000, 2_000_000  # to fit to: more would take minutes, and gigabytes of memory
_LONGEST = 500  # words that are learned at once
_MAX_CHAIN_STATES = 600  # the time of a CRF grows with their square
_MAX_NUMBERS = 1 << 24  # weights: with many states there are fewer features, the most frequent ones
_MIN_WEIGHT = 0.05  # features without any larger weight are removed after fitting
_MAX_CACHED = 2000  # texts
_LENGTH_NOISE = 0.1  # of the order by length, so that batches differ from epoch to epoch


class LinearTagger:
    """Scores of tags and intents that are linear in the features of words."""

    def __init__(
        self,
        features: Hashes,
        weight: Float[Tensor, "V K"],
        transitions: Float[Tensor, "K K"],
        intent_weight: Float[Tensor, "V C"],
        *,
        are_characters: bool,
    ) -> None:
        """Take the weights of features, whose hashes are sorted; one more row of weights is that of unknown ones."""
        self.features = features
        self.weight = weight
        self.transitions = transitions
        self.intent_weight = intent_weight
        self.are_characters = are_characters
        # The scores of the last texts: validation asks for those of the same texts again and again.
        self._last: tuple[Sequence[Sequence[str]], tuple[list[Tensor], Tensor]] | None = None

    @torch.no_grad()
    def scores(self, texts: Sequence[Sequence[str]]) -> tuple[list[Float[Tensor, "_ K"]], Float[Tensor, "N C"]]:
        """The scores of each text's words, and of its intents."""
        if self._last is not None and self._last[0] == texts:
            return self._last[1]
        lengths = [len(text) for text in texts]
        hashes = word_features(texts, are_characters=self.are_characters)
        rows = torch.from_numpy(_find(hashes, self.features))
        words = _sum_rows(rows, self.weight).split(lengths)
        bags = _bags(rows[:, text_columns(are_characters=self.are_characters)], lengths, len(self.features))
        scores = list(words), _score_bags(bags, self.intent_weight)
        self._last = (texts, scores) if len(texts) <= _MAX_CACHED else None
        return scores

    @classmethod
    def fit(
        cls,
        texts: Sequence[Sequence[str]],
        paths: Sequence[Sequence[int]],
        states: States,
        intents: Sequence[int],
        n_intents: int,
        *,
        are_characters: bool,
    ) -> "LinearTagger":
        """Fit to texts and their paths, and to their intents if there are any; very many texts are thinned out."""
        step = -(-sum(map(len, texts)) // (_MAX_CHARACTERS if are_characters else _MAX_WORDS)) or 1
        texts, paths, intents = texts[::step], paths[::step], intents[::step]
        lengths = [len(text) for text in texts]
        hashes = word_features(texts, are_characters=are_characters)
        features = _frequent_features(hashes, _MAX_NUMBERS // (len(states) + n_intents))
        rows = torch.from_numpy(_find(hashes, features))
        del hashes
        generator = torch.Generator().manual_seed(_SEED)
        weight, transitions = _fit_tags(states, rows, len(features), _cut(lengths), paths, generator)
        intent_weight = torch.zeros(len(features) + 1, n_intents)
        if n_intents:
            bags = _bags(rows[:, text_columns(are_characters=are_characters)], lengths, len(features))
            _fit_intents(intent_weight, bags, torch.tensor(intents), generator)
        largest = torch.cat([weight, intent_weight], dim=1).abs().amax(1) >= _MIN_WEIGHT
        largest[-1] = True  # the row of unknown features
        return cls(
            features[largest[:-1].numpy()],
            _rounded(weight[largest]),
            transitions,
            _rounded(intent_weight[largest]),
            are_characters=are_characters,
        )

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The numbers to store; weights have half precision."""
        return {
            "features": torch.from_numpy(self.features.astype(np.int64)),
            "weight": self.weight.half(),
            "transitions": self.transitions,
            "intent_weight": self.intent_weight.half(),
        }

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], n_states: int, n_intents: int, *, are_characters: bool
    ) -> "LinearTagger":
        """Create the linear tagger that has these `tensors`; ValueError if they do not fit."""
        n_features = len(tensors["features"]) if "features" in tensors else 0
        shapes = {
            "features": (n_features,),
            "weight": (n_features + 1, n_states),
            "transitions": (n_states, n_states),
            "intent_weight": (n_features + 1, n_intents),
        }
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != shapes:
            raise ValueError(f"the tensors must be {', '.join(f'{name} {shape}' for name, shape in shapes.items())}.")
        features = tensors["features"].to(torch.int64).numpy().astype(np.uint64)
        if (features[1:] <= features[:-1]).any():
            raise ValueError("features must be sorted.")
        weights = (tensors[name].float() for name in ("weight", "transitions", "intent_weight"))
        return cls(features, *weights, are_characters=are_characters)


def _rounded(weight: Tensor) -> Tensor:
    """The weights as they are stored, so that a bundle predicts as the run did."""
    return weight.half().float()


def _find(hashes: Hashes, known: Hashes) -> NDArray[np.int32]:
    """The index of each hash in `known`, which is sorted; its length for those that are not in it."""
    if not len(known):
        return np.zeros(hashes.shape, dtype=np.int32)
    found = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return np.where(known[found] == hashes, found, len(known)).astype(np.int32)


def _frequent_features(hashes: Hashes, n_most: int) -> Hashes:
    """The most frequent features, sorted."""
    values, counts = np.unique(hashes, return_counts=True)
    counts[values == NO_FEATURE] = 0
    order = np.argsort(-counts, kind="stable")[:n_most]
    return np.sort(values[order[counts[order] > 0]])


def _sum_rows(rows: Int[Tensor, "N F"], weight: Float[Tensor, "V K"]) -> Float[Tensor, "N K"]:
    """The sum of the weights in each row, without those of the last index."""
    return F.embedding_bag(rows, weight, mode="sum", padding_idx=len(weight) - 1)


class _AdaGrad:
    """AdaGrad (Duchi 2011) for a matrix of which each step changes a few rows."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.squares = torch.full_like(weight, _FIRST_SQUARES)

    def update(self, rows: Int[Tensor, " R"], gradient: Float[Tensor, "R K"], rate: float) -> None:
        """Change these rows."""
        squares = self.squares[rows] + gradient**2
        self.squares[rows] = squares
        self.weight[rows] -= rate * gradient / squares.sqrt()

    def update_bags(self, bags: Int[Tensor, "N F"], gradient: Float[Tensor, "N K"], rate: float) -> None:
        """Change the rows that were summed; the last row stays 0."""
        rows, places = bags.flatten().unique(return_inverse=True)
        summed = gradient.new_zeros(len(rows), gradient.size(1))
        summed.index_add_(0, places, gradient.repeat_interleave(bags.size(1), 0))
        self.update(rows, summed, rate)
        self.weight[-1] = 0.0


def _fit_tags(
    states: States,
    rows: Int[Tensor, "N F"],
    n_features: int,
    lengths: Int[Tensor, " T"],
    paths: Sequence[Sequence[int]],
    generator: torch.Generator,
) -> tuple[Float[Tensor, "V K"], Float[Tensor, "K K"]]:
    """The weights and transitions with the highest likelihood of the paths; with very many states, of each state."""
    crf = CRF(states, learned=True)
    is_chain = len(states) <= _MAX_CHAIN_STATES
    starts = lengths.cumsum(0) - lengths
    gold_states = torch.tensor([state for path in paths for state in path])
    weight, transitions = _AdaGrad(torch.zeros(n_features + 1, len(states))), _AdaGrad(crf.transitions.detach())
    all_states = torch.arange(len(states))
    mean, mean_transitions = torch.zeros_like(weight.weight), torch.zeros_like(transitions.weight)
    for epoch in range(_N_EPOCHS):
        for batch in _batches(lengths, generator):
            own = lengths[batch]
            is_real = torch.arange(int(own.max())) < own[:, None]
            words = (starts[batch][:, None] + torch.arange(is_real.size(1)))[is_real]
            dropped = torch.rand(len(words), rows.size(1), generator=generator) < _DROPOUT
            bags = rows[words].masked_fill(dropped, n_features)
            scores = (_sum_rows(bags, weight.weight) / (1.0 - _DROPOUT)).requires_grad_()
            if is_chain:
                padded = scores.new_zeros(*is_real.shape, scores.size(1)).masked_scatter(is_real[..., None], scores)
                gold = torch.zeros(is_real.shape, dtype=torch.long).masked_scatter(is_real, gold_states[words])
                loss = -crf.log_probability(padded, gold, is_real).sum()
                gradient, of_transitions = torch.autograd.grad(loss, [scores, crf.transitions])
                transitions.update(all_states, of_transitions, _LEARNING_RATE)
            else:
                loss = F.cross_entropy(scores, gold_states[words], reduction="sum")
                (gradient,) = torch.autograd.grad(loss, [scores])
            weight.update_bags(bags, gradient, _LEARNING_RATE)
        if epoch:  # the mean over epochs depends less on the order of the batches than the last one does
            mean += weight.weight / (_N_EPOCHS - 1)
            mean_transitions += transitions.weight / (_N_EPOCHS - 1)
    return mean, mean_transitions


def _cut(lengths: Sequence[int]) -> Int[Tensor, " T"]:
    """The lengths of the parts of texts: a very long text is learned in several."""
    parts = ([_LONGEST] * (length // _LONGEST) + [length % _LONGEST] * (length % _LONGEST > 0) for length in lengths)
    return torch.tensor([part for text in parts for part in text], dtype=torch.long)


def _batches(lengths: Int[Tensor, " N"], generator: torch.Generator) -> Iterator[Int[Tensor, " B"]]:
    """Texts of similar length, in random order."""
    noise = torch.randn(len(lengths), generator=generator) * _LENGTH_NOISE
    order = (lengths * noise.exp()).argsort(stable=True)
    numbers = lengths[order].cumsum(0).sub(1).div(_BATCH_WORDS, rounding_mode="floor")
    batches = order.split(numbers.unique_consecutive(return_counts=True)[1].tolist())
    for number in torch.randperm(len(batches), generator=generator).tolist():
        yield batches[number]


def _bags(rows: Int[Tensor, "N F"], lengths: Sequence[int], n_features: int) -> list[Int[Tensor, " _"]]:
    """The known features of each text, each once."""
    return [own[own < n_features].unique() for own in rows.split(list(lengths))]


def _score_bags(bags: Sequence[Int[Tensor, " _"]], weight: Float[Tensor, "V C"]) -> Float[Tensor, "N C"]:
    """The summed weights of each text's features, divided by the root of their number."""
    sizes = torch.tensor([len(bag) for bag in bags])
    if not len(bags) or not sizes.sum():
        return weight.new_zeros(len(bags), weight.size(1))
    indices = torch.cat(list(bags))
    sums = F.embedding_bag(indices, weight, (sizes.cumsum(0) - sizes).to(indices.dtype), mode="sum")
    return sums / sizes.clamp(min=1).sqrt()[:, None]


def _fit_intents(
    weight: Float[Tensor, "V C"],
    bags: Sequence[Int[Tensor, " _"]],
    intents: Int[Tensor, " N"],
    generator: torch.Generator,
) -> None:
    """Maximize the likelihood of the intents."""
    optimizer = _AdaGrad(weight)
    for epoch in range(_N_INTENT_EPOCHS):
        rate = _INTENT_LEARNING_RATE * (1.0 - epoch / _N_INTENT_EPOCHS)
        for batch in torch.randperm(len(bags), generator=generator).split(_BATCH_TEXTS):
            chosen = [bags[number] for number in batch.tolist()]
            chosen = [bag[torch.rand(len(bag), generator=generator) >= _DROPOUT] for bag in chosen]
            scores = _score_bags(chosen, weight).requires_grad_()
            loss = F.cross_entropy(scores, intents[batch], reduction="sum")
            (gradient,) = torch.autograd.grad(loss, [scores])
            sizes = torch.tensor([len(bag) for bag in chosen])
            flat = (gradient / sizes.clamp(min=1).sqrt()[:, None]).repeat_interleave(sizes, 0)
            optimizer.update_bags(torch.cat(chosen)[:, None], flat, rate)
