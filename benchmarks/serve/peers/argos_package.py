"""Install a CTranslate2 model as a package of Argos Translate, which LibreTranslate serves without a network.

    python argos_package.py EXPORTED FOLDER       in the environment of LibreTranslate

EXPORTED is what `manyheads export --format ctranslate2` writes. LibreTranslate splits texts into sentences with a model
that it downloads; here it gets a blank spaCy pipeline, whose rule splits at full stops and costs a few microseconds.
The same model is installed for two directions: with fewer than two packages, LibreTranslate tries to download some.
"""

import json
import shutil
import sys
from pathlib import Path

import spacy

NAMES = {"en": "English", "zh": "Chinese", "de": "German"}


def install(exported: Path, folder: Path, source: str, target: str) -> None:
    package = folder / "data" / "argos-translate" / "packages" / f"translate-{source}_{target}"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    shutil.copytree(exported, package / "model")
    shutil.copy(exported / "tokenizer.model", package / "sentencepiece.model")
    spacy.blank(source).to_disk(package / "spacy")
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": source,
        "from_name": NAMES[source],
        "to_code": target,
        "to_name": NAMES[target],
    }
    (package / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def main() -> None:
    exported, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    install(exported, folder, "en", "zh")
    install(exported, folder, "en", "de")
    # Argos Translate looks for this file before it downloads a model; the one in the package is used.
    marker = folder / "cache" / "argos-translate" / "spacy" / "senter" / "model"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


if __name__ == "__main__":
    main()
