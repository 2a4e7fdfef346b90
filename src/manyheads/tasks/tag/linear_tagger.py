"""A linear-chain CRF on sparse features: the baseline of a tagger, and a part of its answer.

It is fitted in seconds to a minute, before the Transformer is trained, and is hard to beat on names that the training
texts contain. Trained apart, the two make different errors, so that the sum of their scores is better than either.

Features are words, their parts and shapes, and their neighbors. A feature is a hash of its template and its value;
equal hashes count as equal features.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tasks.tag.crf import CRF, States

Hashes = NDArray[np.uint64]

NO_FEATURE = 0  # where a template has no value, such as the suffix of a word that is too short
_N_BITS = 63  # of a feature: files store signed integers

_EDGE = 4  # positions before and after each text, so that every word has neighbors
_MAX_NGRAMS = 14  # of characters, in a word
_LONGEST_SHAPE = 12
_OUTSIDE = "\0"  # the word at positions before and after a text
_DIGIT = re.compile(r"\d")
_REPETITION = re.compile(r"(.)\1+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_UPPER, _LOWER, _MIXED = 1, 2, 3  # the case of a text

# The attributes of a word by column: the word in lower case, its shape, its shape without repetitions, the word itself,
# its last and first three letters, its affixes, its character n-grams.
_WORD, _SHAPE, _SHORT_SHAPE, _EXACT, _ENDING, _BEGINNING, _AFFIXES = range(7)
_NGRAMS = _AFFIXES + 8


class _Features:
    """The features of all words of some texts, template by template."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        numbers: dict[str, int] = {_OUTSIDE: 0}  # of each distinct word
        words = [0] * _EDGE
        for text in texts:
            words += [numbers.setdefault(word, len(numbers)) for word in text]
            words += [0] * _EDGE
        self._attributes: Hashes = np.array([_attributes(word) for word in numbers], dtype=np.uint64)
        self._words = np.array(words)
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        self._positions = np.arange(lengths.sum()) + np.repeat(_EDGE * np.arange(1, len(texts) + 1), lengths)
        self._templates: list[Hashes] = []

    def at(self, offset: int, attribute: int) -> Hashes:
        """An attribute of the word at this distance from each word."""
        return self._attributes[self._words[self._positions + offset], attribute]

    def add(self, *parts: tuple[int, int], template: int | None = None) -> None:
        """Add a feature that combines attributes, given as (offset, attribute)."""
        self.add_values(*(self.at(*part) for part in parts), template=template)

    def add_values(self, *values: Hashes, template: int | None = None) -> None:
        """Add a feature that combines values; its template is a new one unless given."""
        number = len(self._templates) if template is None else template
        mixed = np.full(values[0].shape, number + 1, dtype=np.uint64)
        for value in values:
            mixed = (mixed ^ value) * _MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
        mixed >>= np.uint64(64 - _N_BITS)
        if len(values) == 1:
            mixed[values[0] == NO_FEATURE] = NO_FEATURE
        self._templates.append(mixed)

    def stack(self) -> Hashes:
        """The features of each word, as rows."""
        return np.stack(self._templates, axis=1)


def word_features(texts: Sequence[Sequence[str]], *, are_characters: bool) -> Hashes:
    """The features of each word of all texts, as rows; those of `text_columns` come first."""
    features = _Features(texts)
    features.add((0, _WORD))
    features.add((0, _WORD), (1, _WORD))
    features.add((-1, _WORD), (0, _WORD), (1, _WORD))
    if are_characters:
        _add_character_features(features)
        return features.stack()
    for column in range(_NGRAMS, _NGRAMS + _MAX_NGRAMS):
        features.add((0, column), template=_NGRAMS)
    _add_word_features(features)
    cases = np.repeat(np.array(list(map(_case_of, texts)), dtype=np.uint64), [len(text) for text in texts])
    features.add_values(cases, features.at(0, _SHORT_SHAPE))
    features.add_values(cases, features.at(0, _WORD))
    features.add_values(cases, *(features.at(offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))
    return features.stack()


def text_columns(*, are_characters: bool) -> slice:
    """The columns of `word_features` that describe a text as a whole, whatever the position of the word."""
    return slice(0, 3 if are_characters else 3 + _MAX_NGRAMS)


def _add_character_features(features: _Features) -> None:
    for offset in (-2, -1, 1, 2):
        features.add((offset, _WORD))
    for offset in (-2, -1, 1):
        features.add((offset, _WORD), (offset + 1, _WORD))
    for offset in (-2, 0):
        features.add(*((offset + step, _WORD) for step in range(3)))
    features.add((-1, _WORD), (1, _WORD))
    for offset in (-1, 0, 1):
        features.add((offset, _SHORT_SHAPE))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))


def _add_word_features(features: _Features) -> None:
    for offset in (-2, -1, 1, 2):
        features.add((offset, _WORD))
    for offset in (-1, 0, 1):
        features.add((offset, _EXACT))
        features.add((offset, _SHAPE))
    for offset in (-2, -1, 0, 1, 2):
        features.add((offset, _SHORT_SHAPE))
    for offset in (-1, 1):
        features.add((offset, _ENDING))
        features.add((offset, _BEGINNING))
    for column in range(_AFFIXES, _NGRAMS):
        features.add((0, column))
    for offset in (-2, -1, 1):
        features.add((offset, _WORD), (offset + 1, _WORD))
    features.add((-1, _WORD), (1, _WORD))
    features.add((-1, _SHORT_SHAPE), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _SHORT_SHAPE))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-2, -1, 0, 1, 2)))
    features.add((-1, _WORD), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _WORD))
    features.add((-2, _WORD), (-1, _WORD), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _WORD), (2, _WORD))
    features.add((0, _ENDING), (1, _WORD))
    features.add((-1, _WORD), (0, _ENDING))
    for direction, template in ((-1, 1000), (1, 1001)):  # words within four positions, at any distance
        for distance in range(1, _EDGE + 1):
            features.add((direction * distance, _WORD), template=template)


@lru_cache(1 << 17)
def _attributes(word: str) -> tuple[int, ...]:
    lower = _DIGIT.sub("0", word.lower())
    shape = shape_of(word)
    values = [lower, shape[:_LONGEST_SHAPE], _REPETITION.sub(r"\1", shape), word, lower[-3:], lower[:3]]
    values += [word[:length] if len(word) > length else "" for length in (1, 2, 3, 4)]
    values += [word[-length:] if len(word) > length else "" for length in (1, 2, 3, 4)]
    framed = f"<{lower}>"
    ngrams = (framed[start : start + length] for length in (3, 4, 5) for start in range(len(framed) - length + 1))
    values += list(dict.fromkeys(ngrams))[:_MAX_NGRAMS]
    hashes = [_hash(value) if value else NO_FEATURE for value in values]
    return (*hashes, *[NO_FEATURE] * (_NGRAMS + _MAX_NGRAMS - len(hashes)))


def shape_of(word: str) -> str:
    """The word with every letter and digit replaced by one of its kind: "Xx-00" for "Ab-12"."""
    return "".join(
        "0"
        if character.isdigit()
        else "X"
        if character.isupper()
        else "x"
        if character.islower()
        else "字"
        if character.isalpha()
        else character
        for character in word
    )


def _case_of(text: Sequence[str]) -> int:
    """Whether the words of a text are in upper case, in lower case or mixed: a capital means little in a headline."""
    has_upper, has_lower = any(map(str.isupper, text)), any(map(str.islower, text))
    return _UPPER if has_upper and not has_lower else _LOWER if has_lower and not has_upper else _MIXED


@lru_cache(1 << 17)
def _hash(text: str) -> int:
    """A hash that is not NO_FEATURE."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") | 1


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
