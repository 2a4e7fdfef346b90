"""The commands of an installed manyheads, one after another: with the oldest or the newest of every dependency.

`make test-oldest` and `make test-newest` run it by its name in environments that have the wheel and pytest only; pytest
does not collect it otherwise.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest

SMALL = """
[tokenizer]
vocab_size = 600
[train]
steps = 6
batch_tokens = 500
warmup = 2
validate_every = 3
[model]
width = 16
n_heads = 2
max_length = 64
"""
TRANSLATOR = f"""
[data]
builtin = "en-zh"
builtin_rows = 1000
{SMALL}
n_encoder_layers = 1
n_decoder_layers = 1
[decode]
method = "greedy"
max_new_tokens = 8
"""
OTHER = f"""
[data]
builtin = "en"
builtin_rows = 1000
{SMALL}
n_%scoder_layers = 1
[task]
kind = "%s"
"""


def manyheads(*arguments: str, text: str | None = None) -> str:
    """Run the command; return its output. An exit code or a warning of a library is an error."""
    command = [sys.executable, "-m", "manyheads", *arguments]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert not re.search(r"Traceback|\w+Warning: |findfont", ran.stderr), ran.stderr
    return ran.stdout


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("installed")
    os.chdir(path)
    os.environ["MANYHEADS_CACHE"] = str(path / "cache")
    return path


@pytest.fixture(scope="module")
def bundle(folder: Path) -> str:
    Path("recipe.toml").write_text(TRANSLATOR, encoding="utf-8")
    manyheads("train", "recipe.toml", "-o", "run")
    return "run/bundle"


def test_the_package_is_the_installed_one() -> None:
    import manyheads as package

    assert Path(package.__file__).is_relative_to(sys.prefix)
    assert re.fullmatch(r"manyheads \d+\.\d+\.\d+\n", manyheads("--version").replace(", version", ""))


def test_a_cpu_only_install_takes_less_than_1_2_gb() -> None:
    if "+cpu" not in metadata.version("torch"):
        pytest.skip("this torch is not the CPU build")
    files = {file.locate() for package in metadata.distributions() for file in package.files or ()}
    sizes = [Path(file).stat().st_blocks * 512 for file in files if file.suffix != ".pyc" and Path(file).exists()]
    assert sum(sizes) < 1.2e9  # without bytecode: docs/how-to/install.md


def test_predict_and_evaluate(bundle: str) -> None:
    answers = manyheads("predict", bundle, "--json", text="Two cats are sleeping.\nThe ▁ dog\n").splitlines()
    assert len(answers) == 2 and all(isinstance(json.loads(line), dict) for line in answers)
    assert "BLEU" in manyheads("evaluate", bundle)


@pytest.mark.parametrize("task", ["classify", "tag", "language"])
def test_other_tasks(folder: Path, task: str) -> None:
    recipe = OTHER % ("de" if task == "language" else "en", task)
    Path(f"{task}.toml").write_text(recipe, encoding="utf-8")
    manyheads("train", f"{task}.toml", "-o", task)
    assert manyheads("predict", f"{task}/bundle", text="The cat is sleeping.\n").strip()
    manyheads("evaluate", f"{task}/bundle")


def test_init_writes_a_recipe_that_trains(folder: Path) -> None:
    Path("my").mkdir()
    Path("my/train.en").write_text("".join(f"the {n} cats sleep\n" for n in range(300)), encoding="utf-8")
    Path("my/train.zh").write_text("".join(f"那{n}只猫睡觉\n" for n in range(300)), encoding="utf-8")
    manyheads("init", "my/train.en", "my/train.zh", "-o", "my.toml")
    manyheads("train", "my.toml", "train.steps=4", "train.warmup=2", "-o", "my-run")


@pytest.mark.parametrize(("option", "magic"), [("--png", b"\x89PNG"), ("--svg", b"<?xml"), ("--pdf", b"%PDF")])
def test_pictures(bundle: str, option: str, magic: bytes) -> None:
    name = f"head.{option[2:]}"
    manyheads("lens", bundle, "Two cats are sleeping.", "--answer", "两只猫正在睡觉。", option, name)
    assert Path(name).read_bytes().startswith(magic)


def test_lens_page_and_walk(bundle: str) -> None:
    manyheads("lens", bundle, "Two cats are sleeping.", "--html", "lens.html")
    assert Path("lens.html").stat().st_size > 100_000
    assert "softmax" in manyheads("walk")
    assert "softmax" in manyheads("walk", bundle, "Two cats are sleeping.")


def test_heads_and_quantize(bundle: str) -> None:
    assert "decoder.0.cross/0" in manyheads("heads", "show", bundle, "--sample", "20")
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("only the native engine computes with int8 weights, and there is no C compiler for it")
    manyheads("quantize", bundle, "-o", "small")
    assert manyheads("predict", "small", text="Two cats are sleeping.\n").count("\n") == 1


def test_serve(bundle: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "manyheads", "serve", f"en-zh={bundle}", "--port", str(port)]
    with Path("serve.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{address}/ready", timeout=10).close()
                    break
                except OSError:
                    assert server.poll() is None, Path("serve.log").read_text()
                    time.sleep(0.1)
            body = json.dumps({"texts": ["Two cats are sleeping."]}).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{address}/v1/predict", data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert len(json.load(answer)["predictions"]) == 1
            for page in ("/", "/docs", "/lens", "/metrics", "/languages"):
                with urllib.request.urlopen(address + page, timeout=60) as answer:
                    assert answer.status == 200, page
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0, Path("serve.log").read_text()


def test_the_native_engine(bundle: str) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    assert manyheads("predict", bundle, "--engine", "native", text="Two cats are sleeping.\n").count("\n") == 1
