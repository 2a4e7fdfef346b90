"""A run that keeps its snapshots, and what its heads did at each."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import LensError
from manyheads.lens.pictures import draw_heads, draw_timeline
from manyheads.lens.roles import UNKNOWN, Figure, HeadReport, Role, RoleCard
from manyheads.lens.timeline import Moment, follow
from manyheads.recipe import Recipe, run

TRAIN = {"steps": 6, "batch_tokens": 500, "warmup": 2, "validate_every": 3, "save_every": 2, "average": 1}


def test_a_run_with_a_timeline_keeps_every_snapshot(
    recipe_table: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    list(run(Recipe.from_table(recipe_table(train=TRAIN | {"head_timeline": True})), tmp_path / "run"))
    moments = list(follow(tmp_path / "run", count=8))
    assert [moment.step for moment in moments] == [2, 4, 6]
    assert set(moments[0].roles) == {f"{name}/{head}" for name in NAMES for head in (0, 1)}
    written = [json.loads(line) for line in (tmp_path / "run" / "heads.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in written] == [2, 4, 6]
    assert 0 < written[0]["figures"]["encoder.0.self/0"]["confidence"] <= 1
    assert written[0]["figures"] != written[2]["figures"]


NAMES = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


def test_without_snapshots_there_is_no_timeline(bundle_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LensError, match=r"has 0 snapshots, too few .* train.head_timeline = true"):
        next(follow(bundle_folder.parent))
    (tmp_path / "other").mkdir()
    with pytest.raises(LensError, match="is not the folder of a finished run"):
        next(follow(tmp_path / "other"))


def test_pictures_hold_every_head() -> None:
    figure = Figure(0.9, 0.8, 1.0, 20, 0.1, "even", 0.2)
    cards = (
        RoleCard("encoder.0.self/0", (Role("object>", "object>", 0.3),), "local", {"object>": figure}),
        RoleCard("encoder.0.self/1", (), "middle", {"confidence": figure}),
    )
    picture = draw_heads(HeadReport(cards, 20, 0, (1,)))
    assert "object → head · 宾语→中心词" in picture
    assert "unknown · 未知" in picture
    moments = [Moment(step, 20, {"encoder.0.self/0": role}, {}) for step, role in ((10, UNKNOWN), (20, "begin"))]
    drawn = draw_timeline(moments)
    assert "encoder.0.self/0, step 20: begin" in drawn
    assert drawn.startswith("<svg")
