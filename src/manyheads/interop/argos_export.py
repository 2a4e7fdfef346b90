"""Export to Argos Translate: a package that `argospm` and LibreTranslate install.

A package is a ZIP file with one folder: metadata.json, sentencepiece.model and, in model/, a CTranslate2 model.
"""

import json
import tempfile
import zipfile
from pathlib import Path

from manyheads.bundle import Bundle
from manyheads.errors import BundleError
from manyheads.interop.ctranslate2_export import export_bundle
from manyheads.messages import _
from manyheads.storage import MANIFEST, atomic_write


def export_argos(bundle: Bundle, path: Path | str) -> None:
    """Write the translator of one language into another as a package, atomically."""
    codes = bundle.task.languages(bundle.task.settings)
    if len(codes) != 2 or not all(codes):
        raise BundleError(
            _(
                "An Argos package needs a translator with task.source_language and task.target_language; this bundle "
                "is of task {kind} without them.",
                kind=bundle.kind,
            )
        )
    source, target = codes
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.9",
        "type": "translate",
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
    }
    name = f"translate-{source}_{target}-1_0"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        export_bundle(bundle, folder)
        package = Path(temporary) / "package.zip"
        with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"{name}/metadata.json", json.dumps(metadata, indent=2))
            file.write(folder / "tokenizer.model", f"{name}/sentencepiece.model")
            for each in sorted(folder.iterdir()):
                if each.name not in ("tokenizer.model", MANIFEST):
                    file.write(each, f"{name}/model/{each.name}")
        atomic_write(Path(path), package.read_bytes())
