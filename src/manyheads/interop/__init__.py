"""Other people's model formats: imports into a bundle, exports of it. May import bundle, run and everything below."""

from collections.abc import Callable
from pathlib import Path

from manyheads.bundle import Bundle
from manyheads.interop.argos_export import export_argos
from manyheads.interop.ctranslate2_export import export_bundle, export_ctranslate2
from manyheads.interop.huggingface_export import export_huggingface
from manyheads.interop.huggingface_import import import_huggingface

# What writes each format, and how to load it.
EXPORTS: dict[str, tuple[Callable[[Bundle, Path], None], str]] = {
    "hf": (export_huggingface, "transformers.AutoTokenizer.from_pretrained({output!r})"),
    "ctranslate2": (export_bundle, "ctranslate2.Translator({output!r})"),
    "argos": (export_argos, "argostranslate.package.install_from_path({output!r})"),
}

__all__ = ["EXPORTS", "export_argos", "export_bundle", "export_ctranslate2", "export_huggingface", "import_huggingface"]
