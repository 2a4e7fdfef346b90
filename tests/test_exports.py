"""The public names of `import manyheads as mh`, and what importing them loads."""

import subprocess
import sys

import pytest

import manyheads as mh


def test_public_names() -> None:
    assert sorted(mh.__all__) == [
        "AblatedBundle",
        "Bundle",
        "DecodeSettings",
        "InspectableBundle",
        "ManyheadsError",
        "ModelSettings",
        "Tap",
        "Tokenizer",
        "Transformer",
        "attention",
        "attention_weights",
        "draw_head",
        "draw_overview",
        "embed",
        "from_huggingface",
        "gated",
        "init",
        "load",
        "trace",
        "train",
        "walk",
    ]
    assert all(getattr(mh, name) is not None for name in mh.__all__)
    assert set(mh.__all__) <= set(dir(mh))


def test_a_former_name_still_works() -> None:
    assert mh.OpenBundle is mh.InspectableBundle


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'transformer'"):
        mh.transformer  # noqa: B018


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("predict", "--nope"),
        ("predict", "missing", "text.txt"),
        ("evaluate", "missing"),
        ("train", "missing.toml"),
        ("init", "missing.csv"),
    ],
)
def test_a_wrong_argument_does_not_wait_for_torch(words: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {list(words)!r}\n"
        "from manyheads.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    sys.exit(7 if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("heavy", ["torch", "numpy", "sentencepiece", "sacrebleu", "rich", "matplotlib", "starlette"])
def test_the_command_line_does_not_import(heavy: str) -> None:
    code = f"import sys, manyheads.cli; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
