import pytest

from manyheads.decode import DecodeSettings
from manyheads.errors import RecipeError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": 0}, "decode.beam = 0 must be at least 1 and at most 256."),
        ({"beam": 60_000}, "decode.beam = 60000 must be at least 1 and at most 256."),
        ({"n_best": 10**400}, f"decode.n_best = 1{'0' * 59} … {'0' * 17} must be at least 1 and at most 256."),
        ({"top_k": 10**9}, "decode.top_k = 1000000000 must be at least 1 and at most 1,000,000."),
        ({"max_new_tokens": 10**6}, "decode.max_new_tokens = 1000000 must be at least 0 and at most 100,000."),
        ({"n_best": 0}, "decode.n_best = 0 must be at least 1 and at most 256."),
        ({"length_penalty": -0.5}, "decode.length_penalty = -0.5 must be at least 0 and at most 10."),
        ({"length_penalty": float("nan")}, "decode.length_penalty = nan must be at least 0 and at most 10."),
        ({"max_new_tokens": -1}, "decode.max_new_tokens = -1 must be at least 0 and at most 100,000."),
        ({"top_k": 0}, "decode.top_k = 0 must be at least 1 and at most 1,000,000."),
        ({"top_k": -1}, "decode.top_k = -1 must be at least 1 and at most 1,000,000."),
        ({"seed": -1}, "decode.seed = -1 must be at least 0 and at most 2,147,483,647."),
        ({"n_best": 5}, "decode.n_best = 5 is more than decode.beam = 4. Use a wider beam or a smaller n_best."),
        (
            {"method": "greedy", "n_best": 2},
            'decode.n_best = 2: decode.method = "greedy" finds one hypothesis. Use "beam" or "sample".',
        ),
        (
            {"temperature": 0.0},
            "decode.temperature = 0.0 must be greater than 0 and finite. "
            'For deterministic output, use decode.method = "greedy".',
        ),
        (
            {"temperature": float("inf")},
            "decode.temperature = inf must be greater than 0 and finite. "
            'For deterministic output, use decode.method = "greedy".',
        ),
        ({"top_p": 0.0}, "decode.top_p = 0.0 must be greater than 0 and at most 1."),
        (
            {"stop": ("x", "")},
            'decode.stop contains an empty text. Use a text such as stop = ["\\n\\n"].',
        ),
        ({"top_p": 1.1}, "decode.top_p = 1.1 must be greater than 0 and at most 1."),
    ],
    ids=str,
)
def test_invalid_settings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        DecodeSettings(**changes)
    assert str(caught.value) == message


def test_all_faults_are_reported_together() -> None:
    with pytest.raises(RecipeError) as caught:
        DecodeSettings(beam=0, top_p=2.0, temperature=-1.0)
    assert len(caught.value.faults) == 3


def test_the_maximum_length_is_the_source_plus_50_unless_set() -> None:
    assert DecodeSettings().max_length(7) == 57
    assert DecodeSettings().max_length() == 50
    assert DecodeSettings(max_new_tokens=3).max_length(7) == 3
    assert DecodeSettings(max_new_tokens=0).max_length(7) == 0


def test_samples_may_outnumber_the_beam() -> None:
    assert DecodeSettings(method="sample", n_best=9, beam=1).n_best == 9
