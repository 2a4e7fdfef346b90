"""The CRF against an enumeration of all paths."""

import itertools

import pytest
import torch
from torch import Tensor

from manyheads.tasks.tag.crf import CRF, States
from manyheads.text.reading.tag_schemes import spans_to_tags, tags_to_spans

STATES = States(["LOC", "PER"])


def is_valid(path: tuple[int, ...]) -> bool:
    """Whether `tags_to_spans` accepts the tags of a path as BIOES."""
    faults: list[object] = []
    tags_to_spans([STATES.names[state] for state in path], "BIOES", on_bad=faults.append)
    return not faults


def score(chain: CRF, scores: Tensor, path: tuple[int, ...]) -> float:
    """The score of a path, added up word by word."""
    total = sum(scores[position, state].item() for position, state in enumerate(path))
    return total + sum(chain.transitions[one, next_one].item() for one, next_one in itertools.pairwise(path))


def every_path(length: int) -> list[tuple[int, ...]]:
    return [path for path in itertools.product(range(len(STATES)), repeat=length) if is_valid(path)]


@pytest.fixture(params=[True, False], ids=["learned", "constrained"])
def chain(request: pytest.FixtureRequest) -> CRF:
    torch.manual_seed(2)
    chain = CRF(STATES, learned=request.param)
    if request.param:
        torch.nn.init.normal_(chain.transitions)
    return chain


@pytest.fixture
def scores() -> Tensor:
    return 2.0 * torch.randn(3, 4, len(STATES), generator=torch.Generator().manual_seed(3))


IS_REAL = torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [True] + [False] * 3])
LENGTHS = (4, 2, 1)


def test_partition_and_best_path_equal_enumeration(chain: CRF, scores: Tensor) -> None:
    totals = chain.log_partition(scores, IS_REAL)
    best = chain.best_paths(scores, IS_REAL)
    for row, length in enumerate(LENGTHS):
        paths = every_path(length)
        values = torch.tensor([score(chain, scores[row], path) for path in paths])
        torch.testing.assert_close(totals[row], values.logsumexp(0))
        assert tuple(best[row]) == paths[int(values.argmax())]


@pytest.mark.parametrize("scale", [50.0, 5_000.0, 1e6])
def test_partition_equals_enumeration_where_sums_of_exponentials_underflow(chain: CRF, scale: float) -> None:
    scores = scale * torch.randn(6, 4, len(STATES), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        chain.transitions *= scale
    totals = chain.log_partition(scores, torch.ones(6, 4, dtype=torch.bool))
    for row in range(6):
        values = torch.tensor([score(chain, scores[row], path) for path in every_path(4)], dtype=torch.float64)
        torch.testing.assert_close(totals[row].double(), values.logsumexp(0), rtol=1e-6, atol=1e-3)


def test_probabilities_of_valid_paths_sum_to_one(chain: CRF, scores: Tensor) -> None:
    paths = torch.tensor(every_path(3))
    n_paths = len(paths)
    real = torch.ones(n_paths, 3, dtype=torch.bool)
    probabilities = chain.log_probability(scores[:1, :3].repeat(n_paths, 1, 1), paths, real).exp()
    torch.testing.assert_close(probabilities.sum(), torch.tensor(1.0))


def test_padding_changes_nothing(chain: CRF, scores: Tensor) -> None:
    paths = torch.tensor([[0, 4, 0, 0]])
    real = torch.tensor([[True, True, False, False]])
    scored = chain.log_probability(scores[:1], paths, real)
    torch.testing.assert_close(scored, chain.log_probability(scores[:1, :2], paths[:, :2], real[:, :2]))


def test_gradients_are_finite_where_scores_are_huge(chain: CRF) -> None:
    scores = torch.full((2, 5, len(STATES)), -400.0)
    scores[:, :, 0] = 400.0
    scores.requires_grad_()
    paths = STATES.path_of(["B-PER", "I-PER", "O", "B-LOC", "O"])
    loss = -chain.log_probability(scores, torch.tensor([paths] * 2), torch.ones(2, 5, dtype=torch.bool)).sum()
    loss.backward()
    assert loss.isfinite()
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_path_of_tags_gives_their_spans() -> None:
    for path in every_path(4):
        tags = [STATES.names[state] for state in path]
        spans = tags_to_spans(tags, "BIOES")
        assert STATES.spans(path) == spans
        assert tuple(STATES.path_of(spans_to_tags(spans, len(path), "IOB2"))) == path


def test_unknown_kind_becomes_o() -> None:
    assert STATES.path_of(["B-MISC", "I-MISC", "B-LOC"]) == [0, 0, 4]
