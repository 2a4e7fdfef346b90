"""What is wrong with an installation: packages that are missing, cannot be imported, or have an unsupported version.

Comparing versions takes time, so it is done only after an error that no other part has explained.
"""

import re
import sys
from importlib import metadata

from manyheads.messages import _


def explain(error: Exception) -> str | None:
    """Return how to repair the installation in one line, or None if the error has another cause."""
    if unmet := find_unmet():
        wanted = " ".join(f"'{requirement}'" for requirement, _version in unmet)
        not_installed = _("not installed")  # Babel does not look into f-strings
        found = ", ".join(f"{requirement} ({version or not_installed})" for requirement, version in unmet)
        return _(
            "manyheads needs other versions of its dependencies: {found}. Run: pip install {wanted}",
            found=found,
            wanted=wanted,
        )
    if not isinstance(error, ImportError):
        return None
    package = (error.name or "").partition(".")[0]
    if package == "manyheads":
        return None
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if sys.maxsize < 2**32:
        return _("{reason}. This is a 32-bit Python, for which PyTorch has no builds. Use a 64-bit one.", reason=reason)
    if not package:
        command = "pip check"
    elif _is_installed(package):
        command = f"pip install --force-reinstall {package}"
    else:
        command = f"pip install {package}" if _is_installed("manyheads") else "pip install ."
    return _("{reason}. The installation is incomplete or damaged. Run: {command}", reason=reason, command=command)


def find_unmet() -> list[tuple[str, str | None]]:
    """Return the requirements that are not met, each with the version that is installed instead, or None."""
    try:
        from packaging.requirements import Requirement

        requirements = [Requirement(text) for text in metadata.requires("manyheads") or []]
    except (ImportError, metadata.PackageNotFoundError):  # run from a clone
        return []
    unmet: list[tuple[str, str | None]] = []
    for requirement in requirements:
        if re.search(r"\bextra\b", str(requirement.marker or "")):
            continue
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            unmet.append((f"{requirement.name}{requirement.specifier}", None))
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            unmet.append((f"{requirement.name}{requirement.specifier}", version))
    return unmet


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
