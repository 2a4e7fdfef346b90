"""Builds the wheel: compiles the message catalogs, and the native engine for several processors.

The libraries are loaded with ctypes and do not depend on the Python version, so the wheel is tagged
py3-none-linux_<machine>. Without a C compiler, and on other systems, the wheel is pure Python: the engine is then
compiled at its first use.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src", "manyheads", "decode", "native")


class NativeEngineHook(BuildHookInterface):  # type: ignore[misc]
    """Adds `decode/native/libraries/*.so` to the wheel."""

    PLUGIN_NAME = "custom"
    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable install compiles the engine at first use instead, for this processor."""
        _load_module(Path(self.root) / "tools" / "catalogs.py").compile_all()
        if version == "editable" or sys.platform != "linux":
            return
        compilation = _load_module(Path(self.root) / NATIVE / "compilation.py")
        compiler = compilation.locate_compiler()
        if compiler is None:
            self.app.display_warning("No C compiler was found: the wheel has no prebuilt native engine.")
            return
        self._folder = tempfile.mkdtemp(prefix="manyheads-wheel-")
        made, errors = compilation.compile_variants(compiler, Path(self._folder))
        for error in errors:
            self.app.display_warning(f"The native engine was not compiled for {error}")
        if not made:
            return
        for path in made:
            build_data["force_include"][str(path)] = f"manyheads/decode/native/libraries/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{os.uname().machine}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled: the wheel has it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _load_module(path: Path) -> ModuleType:
    """Load a file by its path: importing the package needs torch, which a build environment does not have."""
    spec = importlib.util.spec_from_file_location(f"manyheads_build_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
