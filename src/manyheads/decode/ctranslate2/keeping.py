"""Where an exported model is kept: `NAME.ctranslate2` beside the bundle NAME, sealed, with the name of its origin.

One folder a bundle, replaced when the model has changed: exports of models that are gone would pile up otherwise. It
is beside the bundle rather than in it, since a bundle is sealed and may be copied on.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from manyheads.decode.ctranslate2.ctranslate2_export import FORMAT, export
from manyheads.decode.engines import SpecialTokens, Tell
from manyheads.errors import EngineError
from manyheads.model import Transformer
from manyheads.model.weights import weights_of
from manyheads.settings import to_table
from manyheads.storage import atomic_folder, require_files, verify_manifest

_ORIGIN = "origin.txt"


@contextmanager
def exported(model: Transformer, special_tokens: SpecialTokens, bundle: Path | None, tell: Tell) -> Iterator[Path]:
    """A folder with the exported model, whole and of this very model; it may be gone afterwards."""
    kept = None if bundle is None else _keep(model, special_tokens, bundle.resolve(), tell)
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="manyheads-ctranslate2-") as folder:
        export(model, special_tokens, Path(folder))
        yield Path(folder)


def _keep(model: Transformer, special_tokens: SpecialTokens, bundle: Path, tell: Tell) -> Path | None:
    """The kept export, made anew where there is none that will do; None where nothing can be written."""
    folder, origin = bundle.with_name(f"{bundle.name}.ctranslate2"), digest_model(model, special_tokens)
    if folder.exists():
        try:
            require_files(folder, verify_manifest(folder, EngineError), (_ORIGIN,), EngineError)
            if (folder / _ORIGIN).read_text(encoding="utf-8").strip() == origin:
                return folder
            tell(f"{folder} is of another model or another ctranslate2: it is written anew.")
        except (EngineError, OSError) as reason:
            tell(f"{folder} is written anew, since it is not whole. ({reason})")
    try:
        with atomic_folder(folder) as aside:
            export(model, special_tokens, aside)
            (aside / _ORIGIN).write_text(f"{origin}\n", encoding="utf-8")
    except OSError as reason:
        why = reason.strerror or reason
        tell(f"{folder} cannot be written ({why}): this time the exported model is not kept.")
        return None
    return folder


def digest_model(model: Transformer, special_tokens: SpecialTokens) -> str:
    """A SHA-256 of all that an export depends on: every weight, the settings, the marks, the formats."""
    from ctranslate2 import __version__

    metadata = {
        "format": FORMAT,
        "ctranslate2": __version__,
        "model": to_table(model.settings),
        "special_tokens": asdict(special_tokens),
    }
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, value in sorted(weights_of(model).items()):
        digest.update(name.encode())
        digest.update(value.float().cpu().contiguous().numpy().data)
    return digest.hexdigest()
