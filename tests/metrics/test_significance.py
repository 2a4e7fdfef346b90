"""Comparisons of two systems agree with the paired tests of sacreBLEU."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from manyheads.metrics import compare

SENTENCE = "the a old young dog cat man woman sees hears likes big red house tree car near behind"
WORDS = SENTENCE.split()


def make_sentences(n_sentences: int) -> list[str]:
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, k=rng.randint(6, 12))) for _ in range(n_sentences)]


def damage(sentences: list[str], share: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in sentence.split())
        for sentence in sentences
    ]


REFERENCES = make_sentences(150)


@pytest.mark.parametrize(("shares", "is_clear"), [((0.20, 0.215), False), ((0.20, 0.32), True)])
def test_differences_and_p_values_agree_with_sacrebleu(shares: tuple[float, float], is_clear: bool) -> None:
    mine, other = damage(REFERENCES, shares[0], 1), damage(REFERENCES, shares[1], 2)
    metrics = {"BLEU": BLEU(force=True), "chrF": CHRF()}
    systems = [("other", other), ("mine", mine)]
    comparisons = compare(mine, other, REFERENCES, "en", n_trials=3000)
    assert [one.name for one in comparisons] == ["BLEU", "chrF"]
    for test_type, n_samples in (("ar", 3000), ("bs", 1000)):
        _, columns = PairedTest(systems, metrics, [REFERENCES], test_type=test_type, n_samples=n_samples)()
        for one in comparisons:
            theirs, ours = columns[{"chrF": "chrF2"}.get(one.name, one.name)]
            assert (one.other, one.value) == pytest.approx((theirs.score, ours.score))
            assert one.difference == pytest.approx(ours.score - theirs.score)
            if test_type == "ar":
                assert one.p_randomization == pytest.approx(ours.p_value, abs=0.02)
            else:  # that of sacreBLEU is one-sided
                assert one.p_bootstrap == pytest.approx(2 * ours.p_value, abs=0.05)
    for one in comparisons:
        assert one.low < one.difference < one.high
        assert (one.low > 0) is is_clear
        assert (one.p_bootstrap < 0.05) is is_clear
        assert (one.p_randomization < 0.05) is is_clear


def test_swapping_the_systems_negates_the_difference() -> None:
    mine, other = damage(REFERENCES, 0.2, 1), damage(REFERENCES, 0.3, 2)
    (there, _), (back, _) = (
        compare(*systems, REFERENCES, "en", n_trials=500) for systems in ((mine, other), (other, mine))
    )
    assert [back.difference, back.low, back.high] == pytest.approx([-there.difference, -there.high, -there.low])
    assert back.p_bootstrap == there.p_bootstrap
    assert back.p_randomization == there.p_randomization
    assert compare(mine, other, REFERENCES, "en", n_trials=500)[0] == there  # seeded


def test_system_does_not_differ_from_itself() -> None:
    mine = damage(REFERENCES, 0.2, 1)
    for one in compare(mine, mine, REFERENCES, "en", tokenized=True, n_resamples=100, n_trials=100):
        assert (one.difference, one.low, one.high) == (0, 0, 0)
        assert one.p_bootstrap == one.p_randomization == 1.0


def test_single_sentences_and_empty_outputs_can_be_compared() -> None:
    for mine, other in ((["a b c d e"], [""]), ([""], [""])):
        comparisons = compare(mine, other, ["a b c d e"], tokenized=True, n_resamples=50, n_trials=50)
        assert [one.difference for one in comparisons] == pytest.approx([100 if any(mine) else 0] * 3)
        assert all(one.p_randomization == 1 for one in comparisons)  # one sentence proves nothing


def test_outputs_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2, 1 and 2 sentences cannot be compared"):
        compare(["a", "b"], ["a"], ["a", "b"])
