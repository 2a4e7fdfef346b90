"""The timeline of roles over the snapshots of a run, and the pictures of heads."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import LensError
from manyheads.language import using
from manyheads.lens.pictures.role_pictures import draw_heads, draw_timeline
from manyheads.lens.roles.role_assignment import UNKNOWN, HeadReport, Role, RoleCard, Statistic
from manyheads.lens.roles.timeline import TimelineEntry, iterate_timeline
from manyheads.run import Recipe, run

TRAIN = {"steps": 6, "batch_tokens": 500, "warmup": 2, "validate_every": 3, "save_every": 2, "average_snapshots": 1}


def test_timeline_has_an_entry_per_snapshot(recipe_table: Callable[..., dict[str, object]], tmp_path: Path) -> None:
    list(run(Recipe.from_table(recipe_table(train=TRAIN | {"keep_all_snapshots": True})), tmp_path / "run"))
    entries = list(iterate_timeline(tmp_path / "run", count=8))
    assert [entry.step for entry in entries] == [2, 4, 6]
    assert set(entries[0].roles) == {f"{name}/{head}" for name in NAMES for head in (0, 1)}
    written = [json.loads(line) for line in (tmp_path / "run" / "heads.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in written] == [2, 4, 6]
    assert 0 < written[0]["statistics"]["encoder.0.self/0"]["confidence"] <= 1
    assert written[0]["statistics"] != written[2]["statistics"]


NAMES = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


def test_timeline_without_snapshots_is_refused(bundle_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LensError, match=r"has 0 snapshots; a timeline needs at least 2.* train.keep_all_snapshots"):
        next(iterate_timeline(bundle_folder.parent))
    (tmp_path / "other").mkdir()
    with pytest.raises(LensError, match="is not the folder of a finished run"):
        next(iterate_timeline(tmp_path / "other"))


def test_pictures_show_every_head_in_one_language() -> None:
    statistic = Statistic(0.9, 0.8, 1.0, 20, 0.1, "uniform", 0.2)
    cards = (
        RoleCard("encoder.0.self/0", (Role("object>", "object>", 0.3),), "local", {"object>": statistic}),
        RoleCard("encoder.0.self/1", (), "middle", {"confidence": statistic}),
    )
    report = HeadReport(cards, 20, 0, (1,))
    with using("en"):
        english = draw_heads(report)
    with using("zh"):
        chinese = draw_heads(report)
    assert "object → head" in english
    assert "unknown" in english
    assert not re.search(r"[\u4e00-\u9fff]", english)
    assert "宾语→中心词" in chinese
    assert "未知" in chinese
    entries = [
        TimelineEntry(step, 20, {"encoder.0.self/0": role}, {})
        for step, role in ((10, UNKNOWN), (20, "attention-sink"))
    ]
    drawn = draw_timeline(entries)
    assert "encoder.0.self/0, step 20: attention-sink" in drawn
    assert drawn.startswith("<svg")
