"""The parts of the pages that compute, tested on Node.js: one process for each file of page_modules/."""

import base64
import json
import re
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.lens.traces.head_maps import decode_map, encode_map

from serve import node

ROOT = Path(__file__).parents[2]
MODULES = sorted(Path(__file__).parent.glob("page_modules/*.test.js"))
DECODE = """
import { decodeBase64, decodeMap, inflate } from "#page/lens/head_map.js";
const { data, scale } = JSON.parse(process.argv[1]);
const bytes = await inflate(new Blob([decodeBase64(data)]).stream());
console.log(JSON.stringify([...decodeMap(bytes, scale, 5, 5).values]));
"""


def run_node(*arguments: str) -> str:
    """Return what a script writes to its standard output."""
    found = node.find_node()
    if found is None:
        pytest.skip(node.MISSING)
    done = subprocess.run(
        [found, "--no-warnings", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name.removesuffix(".test.js"))
def test_modules(path: Path) -> None:
    report = run_node("--test-reporter=tap", str(path))
    assert re.search(r"^# pass [1-9]", report, re.MULTILINE), report
    assert re.search(r"^# skipped 0$", report, re.MULTILINE), report


def test_bytes_decode_to_the_weights_that_the_server_encoded() -> None:
    weights = torch.randn(1, 5, 5, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    steps, scales = encode_map(weights)
    encoded = {"data": base64.b64encode(zlib.compress(steps[0].tobytes())).decode(), "scale": float(scales[0])}
    values = json.loads(run_node("--input-type=module", "--eval", DECODE, json.dumps(encoded)))
    np.testing.assert_allclose(values, decode_map(steps[0], float(scales[0])).ravel(), rtol=1e-6)
