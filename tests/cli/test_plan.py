"""`manyheads plan`: a table of 80 columns, JSON, and clear errors."""

import json
from pathlib import Path

import pytest

from manyheads.cli.rendering.output import cell_width

from cli.conftest import Run

BASE = Path(__file__).parents[2] / "recipes" / "wmt14-base.toml"


@pytest.mark.parametrize(("language", "expected"), [("en", "Memory per device"), ("zh", "每个设备的内存")])
def test_table_has_80_columns_at_most(manyheads: Run, language: str, expected: str) -> None:
    done = manyheads("plan", BASE, "--gpus", "8", "--kind", "H100", "--price", "3", "--lang", language)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout
    for line in done.stdout.splitlines()[1:]:  # the first contains the path
        assert cell_width(line) <= 80, line
    for text in ("63,045,632", "989 TFLOP/s", "FSDP", "80 GB"):
        assert text in done.stdout


def test_json(manyheads: Run) -> None:
    done = manyheads("plan", BASE, "train.ema_decay=0.999", "--gpus", "2", "--kind", "v100", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    payload = json.loads(done.stdout)
    assert payload["devices"]["precision"] == "float32"  # it has no bfloat16
    assert payload["memory_bytes"]["replicated"]["ema"] == 4 * payload["parameters"]["total"]
    assert payload["memory_bytes"]["sharded"]["ema"] == 2 * payload["parameters"]["total"]
    rate = 15.7e12 * 2 * payload["devices"]["utilization"] * payload["devices"]["efficiency"]
    assert payload["seconds"]["total"] == pytest.approx(payload["flop"]["total"] / rate)
    assert payload["cost"] is None
    assert payload["trial"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["nowhere.toml"],
            1,
            "nowhere.toml: there is no such file or folder. Give a recipe (.toml) or a run's folder.",
        ),
        (["."], 1, "is not a run: it has no recipe.toml"),
        ([BASE, "--gpus", "8"], 2, "--gpus and --kind belong together"),
        ([BASE, "--gpus", "8", "--kind", "z80"], 2, "'z80' is not one of p100, v100"),
        ([BASE, "--gpus", "8", "--kind", "a100", "--cpus", "2"], 2, "exclude each other"),
        ([BASE, "--gpus", "0", "--kind", "a100"], 2, "0 is not in the range"),
        ([BASE, "--utilization", "0.5"], 2, "--utilization is for --gpus"),
        ([BASE, "--price", "-1"], 2, "-1.0 is not in the range"),
        ([BASE, "model.n_heads=7", "--gpus", "1", "--kind", "t4"], 1, "model.n_heads = 7 does not divide"),
    ],
)
def test_bad_input(manyheads: Run, words: list[str], code: int, message: str) -> None:
    done = manyheads("plan", *words)
    assert done.returncode == code
    assert message in done.stderr
