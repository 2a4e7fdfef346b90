"""Other people's model formats: exports of a bundle. May import bundle, run and everything below."""

from manyheads.interop.ctranslate2_export import export_bundle, export_ctranslate2

__all__ = ["export_bundle", "export_ctranslate2"]
