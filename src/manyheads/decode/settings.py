"""`DecodeSettings`: how probabilities become token ids. `SpecialTokens`: the ids that are not words."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.messages import Message, _
from manyheads.settings import Range, Seed, raise_faults, type_faults

DEFAULT_LENGTH_PENALTY = 0.6
_EXTRA_TOKENS = 50  # Vaswani 2017, section 6.1: "maximum output length during inference to input length + 50"
_USE_GREEDY = Message('For deterministic output, use decode.method = "greedy".')


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the special tokens."""

    bos: int
    eos: int
    pad: int
    forbidden: tuple[int, ...]  # are never generated
    leads: tuple[int, ...] = ()  # come after BOS in every output, and are not part of it


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """How to decode. The defaults are those of Vaswani 2017."""

    # "greedy" takes the most probable token at each step, "beam" keeps several hypotheses, "sample" draws at random.
    method: Literal["greedy", "beam", "sample"] = "beam"
    beam: Annotated[int, Range(1, 256)] = 4  # number of hypotheses that beam search keeps at each step
    # α of ((5 + length) / 6)^α, which divides the log-probability (Wu 2016): a larger α favors longer outputs. Default:
    # a seq2seq run chooses it on its validation set; elsewhere 0.6. The early stopping of beam search is exact only for
    # α ≥ 0; a huge α would overflow.
    length_penalty: Annotated[float, Range(0, 10)] | None = None
    n_best: Annotated[int, Range(1, 256)] = 1  # number of hypotheses to return: of a beam search, or samples
    # The most tokens to generate; default: the source's + 50, or 50 after a prompt.
    max_new_tokens: Annotated[int, Range(0, 100_000)] | None = None
    stop: tuple[str, ...] = ()  # generation after a prompt ends before the first of these texts

    # No sequence of this many tokens is generated twice in one output. Default: any may be.
    no_repeat_ngram: Annotated[int, Range(1, 100)] | None = None
    # Where the output of a seq2seq model ends in a loop that its source does not have, search again with
    # no_repeat_ngram = 3.
    repetition_guard: bool = True
    # Where a translation by beam search lacks code, markup or the like of its source, search again, with a wide beam
    # and then, if the tokenizer has placeholders, for a translation that copies each of them.
    copy_guard: bool = True
    # A translation whose confidence is lower has no answer, only candidates. Default: every translation has one.
    abstain: Annotated[float, Range(0, 1)] | None = None

    # Sampling temperature; lower is more deterministic.
    temperature: Annotated[float, Range(greater_than=0, hint=_USE_GREEDY)] = 1.0
    top_k: Annotated[int, Range(1, 1_000_000)] | None = None  # sample from the k most probable tokens; default: all
    # Sample from the smallest set of tokens with this total probability (Holtzman 2020).
    top_p: Annotated[float, Range(greater_than=0, at_most=1)] = 1.0
    seed: Seed = 1  # seed of sampling

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "decode.") or self._faults())

    @property
    def alpha(self) -> float:
        """The length penalty, or its default."""
        return DEFAULT_LENGTH_PENALTY if self.length_penalty is None else self.length_penalty

    def max_length(self, source_length: int = 0) -> int:
        """The maximum number of tokens to generate, EOS included, for a source of this length (0: for a prompt)."""
        return source_length + _EXTRA_TOKENS if self.max_new_tokens is None else self.max_new_tokens

    def _faults(self) -> list[str]:
        faults = []
        if "" in self.stop:
            faults.append(_('decode.stop contains an empty text. Use a text such as stop = ["\\n\\n"].'))
        if self.method == "beam" and self.n_best > self.beam:
            faults.append(
                _(
                    "decode.n_best = {n_best} is more than decode.beam = {beam}. Use a wider beam or a smaller n_best.",
                    n_best=self.n_best,
                    beam=self.beam,
                )
            )
        if self.method == "greedy" and self.n_best > 1:
            faults.append(
                _(
                    'decode.n_best = {n_best}: decode.method = "greedy" finds one hypothesis. Use "beam" or "sample".',
                    n_best=self.n_best,
                )
            )
        return faults
