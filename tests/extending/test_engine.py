"""An engine from outside the package: one folder and one line of registration."""

import sys
from pathlib import Path

import pytest

from manyheads.bundle import Bundle, load
from manyheads.decode import ENGINES

PARROT = '''
"""An engine that copies its source."""

from manyheads.decode.hypotheses import make_hypothesis


class Parrot:
    name = "parrot"
    max_batch_tokens = 1000

    def unsupported(self, settings):
        return "sampling" if settings.method == "sample" else ""

    def generate(self, sources, settings, streams):
        return [[make_hypothesis(source[:-1], 0.0, finished=True, alpha=0.0, length=1)] for source in sources]


def make_parrot(model, special_tokens, *, is_int8, shortlist):
    return Parrot()
'''


def test_an_engine_is_one_folder_and_one_line(
    bundle_folder: Path, untrained: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "parrot"
    folder.mkdir()
    (folder / "__init__.py").write_text(PARROT)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        from parrot import make_parrot  # type: ignore[import-not-found]

        monkeypatch.setitem(ENGINES, "parrot", make_parrot)  # the line: ENGINES["parrot"] = make_parrot
        loaded = load(bundle_folder, engine="parrot")
        assert loaded.predict(["The dog sleeps."]) == ["The dog sleeps."]
        assert loaded.engine.used == "parrot"
        assert loaded.predict(["The dog sleeps."], method="sample") == untrained.predict(
            ["The dog sleeps."], method="sample"
        )
        assert loaded.engine.used == "torch"
    finally:
        sys.modules.pop("parrot", None)
