"""Curves of the speed benchmarks: fitted powers, tables and plots, and measured memory."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SPEED = Path(__file__).parents[2] / "benchmarks" / "speed"


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SPEED))
    import curves

    return curves


def test_fit_power_returns_the_exponent(curves: ModuleType) -> None:
    assert curves.fit_power([(x, 3 * x**1.7) for x in (1, 2, 5, 9)]) == pytest.approx(1.7)
    assert curves.fit_power([(x, 4.0) for x in (1, 2, 5)]) == pytest.approx(0)


def test_table_and_plot_of_growth(curves: ModuleType) -> None:
    import draw_growth

    sizes = [128, 256, 512]
    both = [
        {"curve": "length", "what": "training", "sizes": sizes, "cpu": [[x**2 / 1e6] * 3 for x in sizes]},
        {"curve": "length", "what": "decoding", "engine": "native", "sizes": sizes, "cpu": [[x / 1e6] for x in sizes]},
    ]
    record = {"n_turns": 3, "date": "today", "machine": "here", "load": 0.1, "curves": both}
    lines = draw_growth.growth_table(record).splitlines()
    assert lines[-2] == "| length | training | 128 … 512 | a step | 16.4 ms | 262 ms | 2.00 | 2.00 |"
    assert lines[-1] == "| length | decoding (native) | 128 … 512 | a sentence | 128 µs | 512 µs | 1.00 | 1.00 |"
    picture = draw_growth.growth_picture(record)
    assert picture.count("<polyline") == 2
    assert "training, a step: power 2.00 (2.00 at the end)" in picture
    # On logarithmic axes, equal ratios have equal distances.
    across = [float(x) for x in re.findall(r'<circle class="f0" cx="([\d.]+)"', picture)]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)


def test_skipped_measurements_are_empty_cells(curves: ModuleType) -> None:
    import draw_attention

    points = [
        {"path": path, "what": what, "view": view, "n": n, "extra_bytes": 2e6 * n, "cpu": [0.5]}
        for n in (128, 256)
        for path in ("fused", "explicit")
        for view in ("bidirectional", "causal", "padded causal")
        for what in ("attention", "module")
        if (path, n) != ("explicit", 256)
    ]
    records = {"forward": {"date": "today", "machine": "here", "load": 0.1, "points": points}}
    last = draw_attention.attention_tables(records).splitlines()[-1]
    assert last == "| 256 |" + " 0.5 s, 512 / 512 MB |" * 3 + " — |" * 3
    assert draw_attention.attention_picture(records).count("<polyline") == 8


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_memory_is_measured_in_a_child_process(curves: ModuleType) -> None:
    import children

    # As in the benchmarks, the parent is a process that has only warmed torch up.
    script = (
        "import children, json, torch\ntorch.set_num_threads(1)\n"
        "torch.ones(10_000_000)\n"
        "hold = lambda n: children.measure(lambda: torch.ones(n // 4), seconds=0.0)['extra_bytes']\n"
        "sizes = (4_000, 40_000_000, 80_000_000)\n"
        "print(json.dumps([children.in_child(lambda n=n: {'n': hold(n)})['n'] for n in sizes]))"
    )
    folder = str(Path(children.__file__).parent)
    printed = subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True, text=True)
    hardly_any, few, many = json.loads(printed.stdout)
    assert hardly_any < 1e6  # without the code of torch, 4 MB, which the child maps when it first runs it
    assert few == pytest.approx(40e6, rel=0.1)
    assert many - few == pytest.approx(40e6, rel=0.02)
    with pytest.raises(RuntimeError, match="A measurement failed"):
        children.in_child(lambda: {"result": set()})
