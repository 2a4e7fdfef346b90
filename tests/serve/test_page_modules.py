"""The parts of the page that compute: maps, units, links, rounding, addresses, messages. They run on Node.js."""

import base64
import json
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import manyheads
from manyheads.lens.head_maps import decode_map, encode_map

from serve.node import MISSING, find_node

STATIC = Path(manyheads.__file__).parent / "serve" / "static"
WORDS = [
    {"text": "BOS", "start": 0, "end": 0, "kind": "special", "parts": [[0, 1.0]]},
    {"text": "猫", "start": 0, "end": 1, "kind": "text", "parts": [[1, 1.0], [2, 1.0], [3, 0.5]]},
    {"text": "睡", "start": 1, "end": 2, "kind": "text", "parts": [[3, 0.5]]},
    {"text": "。", "start": 2, "end": 3, "kind": "punctuation", "parts": [[4, 1.0]]},
]


def run(code: str, **values: Any) -> Any:
    """Run the body of an async function with `values` and `load(module)`; return what it returns."""
    script = (
        f"const values = {json.dumps(values)};"
        f"const load = (name) => import({json.dumps(STATIC.as_uri())} + '/' + name);"
        f"const main = async () => {{ {code} }};"
        "console.log(JSON.stringify(await main()));"
    )
    node = find_node()
    if node is None:
        pytest.skip(MISSING)
    done = subprocess.run(
        [node, "--no-warnings", "--input-type=module", "-"],
        input=script,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def weights() -> torch.Tensor:
    """One row-stochastic map of 5 tokens."""
    return torch.randn(1, 5, 5, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)


def scene(code: str, weights: torch.Tensor, **state: Any) -> Any:
    """Make a scene of self-attention and run code on it."""
    side = {"text": "猫睡。", "tokens": WORDS, "characters": WORDS, "words": WORDS}
    trace = {"sides": {"source": side}}
    return run(
        "const head = await load('head_map.js');"
        "const map = {values: Float32Array.from(values.weights), n_queries: 5, n_keys: 5};"
        "const attention = {name: 'encoder.0.self', queries: 'source', keys: 'source'};"
        f"const scene = head.makeScene(values.trace, attention, 0, map, values.state); {code}",
        weights=weights.flatten().tolist(),
        trace=trace,
        state={"unit": "words", "kind": "weights", "sinks": True, **state},
    )


def test_bytes_decode_to_the_weights_that_the_server_encoded(weights: torch.Tensor) -> None:
    steps, scales = encode_map(weights)
    deflated = base64.b64encode(zlib.compress(steps[0].tobytes())).decode()
    values = run(
        "const {decodeBase64, decodeMap, inflate} = await load('head_map.js');"
        "const bytes = await inflate(new Blob([decodeBase64(values.data)]).stream());"
        "return [...decodeMap(bytes, values.scale, 5, 5).values];",
        data=deflated,
        scale=float(scales[0]),
    )
    np.testing.assert_allclose(values, decode_map(steps[0], float(scales[0])).ravel(), rtol=1e-6)


def test_units_pool_their_parts(weights: torch.Tensor) -> None:
    pooled = np.array(scene("return [...scene.values];", weights)).reshape(4, 4)
    shares = np.zeros((4, 5))
    for number, unit in enumerate(WORDS):
        for position, share in unit["parts"]:  # type: ignore[attr-defined]
            shares[number, position] = share
    expected = (shares / shares.sum(1, keepdims=True)) @ weights[0].numpy() @ shares.T
    np.testing.assert_allclose(pooled, expected, rtol=1e-5)
    np.testing.assert_allclose(pooled.sum(1), 1.0, rtol=1e-5)


def test_hidden_sinks_take_their_mass_with_them(weights: torch.Tensor) -> None:
    shown = scene(
        "return {n: scene.keys.length, sums: [...scene.rowSums], hidden: scene.hidden};", weights, sinks=False
    )
    assert shown["n"] == 2
    assert shown["hidden"]["n"] == 2
    assert shown["hidden"]["share"] == pytest.approx(1 - np.mean(shown["sums"]), rel=1e-5)


def test_links_are_the_largest_that_hold_the_share_of_the_row(weights: torch.Tensor) -> None:
    code = "return scene.queries.map((_, q) => [head.largestLinks(scene, q, values.state.mass), [...scene.values]]);"
    for mass in (0.3, 0.9, 1.0):
        for query, (links, values) in enumerate(scene(code, weights, mass=mass)):
            row = np.array(values).reshape(4, 4)[query]
            assert row[links].sum() >= mass * row.sum() - 1e-5
            assert row[links[:-1]].sum() < mass * row.sum()
            assert sorted(row[links], reverse=True) == list(row[links])


def test_displayed_terms_add_up_to_the_displayed_total() -> None:
    terms = np.random.default_rng(0).normal(size=32).tolist()
    rounded = run("return (await load('number_parts.js')).roundToSum(values.terms, 3);", terms=terms)
    assert round(sum(rounded), 3) == round(sum(terms), 3)
    assert np.abs(np.array(rounded) - terms).max() < 0.001


def test_an_address_restores_the_state_and_bad_values_are_ignored() -> None:
    state = {
        "page": "tour",
        "text": 'a&b=c#d "猫" 🙂',
        "pins": [3, 1],
        "off": ["encoder.0.self/2"],
        "mass": 0.5,
        "at": 4,
    }
    found = run(
        "const {readAddress, writeAddress, defaultState} = await load('store.js');"
        "return readAddress(writeAddress({...defaultState(), ...values.state}));",
        state=state,
    )
    assert {name: found[name] for name in state} == state
    bad = "#page=x&head=-1&mass=7&pins=a,2&off=../etc,encoder.0.self/1&unit=bytes&attention=<b>&lang=fr&surprise=1"
    found = run("return (await load('store.js')).readAddress(values.bad);", bad=bad)
    assert found == {"pins": [2], "off": ["encoder.0.self/1"]}


def test_every_message_is_there_in_both_languages() -> None:
    texts = sorted(path.name for path in STATIC.glob("*texts.js"))
    found = run(
        "for (const name of values.texts) await load(name);"
        "const {incompleteMessages, t} = await load('messages.js');"
        "return {incomplete: incompleteMessages(), missing: values.keys.filter((key) => t(key) === key)};",
        texts=texts,
        keys=sorted(
            {key for path in STATIC.glob("*.js") for key in re.findall(r'\bt\("(\w+)"', path.read_text("utf-8"))}
        ),
    )
    assert found == {"incomplete": [], "missing": []}
