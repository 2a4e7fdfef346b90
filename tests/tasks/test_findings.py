from pathlib import Path

from manyheads.doctor import training_checks
from manyheads.doctor.run_log import RunLog
from manyheads.language import using
from manyheads.tasks.findings import Finding, excerpt, has_bad, merge_good, share, verdict_of


def test_verdict_of_a_share() -> None:
    assert [verdict_of(n, 100, warn=0.01, fail=0.1) for n in (1, 2, 10, 11)] == ["good", "warning", "warning", "bad"]
    assert verdict_of(0, 0, warn=0.0) == "good"


def test_share_shows_small_shares() -> None:
    assert share(1, 3) == "1 of 3 (33.3 %)"
    assert share(1, 29_000) == "1 of 29,000 (< 0.01 %)"
    assert share(12, 29_000) == "12 of 29,000 (0.04 %)"
    assert share(0, 5) == "0 of 5"


def test_excerpt_shows_invisible_characters() -> None:
    assert excerpt(" a\u200bb ") == "␣a<U+200B>b␣"
    assert excerpt("x" * 200 + "\xa0end") == "…" + "x" * 56 + "<U+00A0>end"
    assert excerpt("x" * 200).endswith("x…")
    assert excerpt("   ") == "␣␣␣"


def test_good_findings_are_reported_once() -> None:
    good, bad = Finding("a", "good", "fine"), Finding("a", "bad", "broken")
    assert merge_good([good, good]) == [good]
    assert merge_good([good, bad]) == [bad]
    assert has_bad([good, bad])
    assert not has_bad([good])


def test_findings_are_in_the_language_in_use(tmp_path: Path) -> None:
    log = RunLog(tmp_path, losses={1: 5.0}, gradient_norms={1: 1.0}, last_event="Finished")
    with using("zh"):
        assert training_checks.check_log(log).message == "1 步，0 次验证，已完成。"
    with using("en"):
        assert training_checks.check_log(log).message == "1 steps, 0 validations, finished."
