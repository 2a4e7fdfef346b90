"""The memory of attention over a long text must not grow quadratically with its length."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys
from pathlib import Path

import torch
from manyheads.model import ModelSettings
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.blocks import make_self_attention
from manyheads.model.masks import View, count_positions

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

torch.set_num_threads(1)
kind, n_positions = sys.argv[1], int(sys.argv[2])
q, k, v = (torch.randn(1, 8, n_positions, 64) for _ in range(3))
is_real = torch.ones(1, n_positions, dtype=torch.bool)
if kind == "padded":
    is_real[:, -n_positions // 4 :] = False
attention = make_self_attention("encoder.0.self", ModelSettings(vocab_size=10))
assert isinstance(attention, MultiHeadAttention)
with torch.inference_mode():
    for n in (64, n_positions):  # the first call includes one-time allocations
        before = peak()
        real = is_real[:, :n]
        view = View.bidirectional(real) if kind == "padded" else View.causal(real, count_positions(real), n)
        attention._attend_fused(attention.scores, q[:, :, :n], k[:, :, :n], v[:, :, :n], view, None)
print((peak() - before) / 1e6)
"""


# `getrusage` would be portable, but its peak includes that of the parent process.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["causal", "padded"])
def test_attention_over_eight_thousand_positions_needs_little_memory(kind: str) -> None:
    """8 heads of width 64: the output takes 17 MB; the attention weights of one layer would take 2 GB."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, kind, "8192"], capture_output=True, text=True, check=True)
    assert 8 < float(done.stdout) <= 64
