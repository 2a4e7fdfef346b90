"""Files in object stores (s3://…, gs://…, memory://…), copied once to this machine through fsspec.

A copy is kept in the user's cache, by its address and version: a changed object is copied again.
"""

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.storage import naming_full_disk, user_cache_folder

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_BLOCK_BYTES = 1 << 22


def is_remote(name: str) -> bool:
    """Return whether a name is the address of an object in a store."""
    return _ADDRESS.match(name) is not None


def local_copy(address: str, cache: Path | None = None) -> Path:
    """Return the path of a local copy of an object; copy it unless this version of it is in the cache."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DataError(
            _("{address} is in an object store, which needs fsspec: pip install 'manyheads[remote]'.", address=address)
        ) from None
    try:
        system, path = url_to_fs(address)
        return _copy(system, path, address, cache or user_cache_folder("remote"))
    except ImportError as error:  # s3fs for s3://, gcsfs for gs://
        raise DataError(
            _("{address} needs another package: {reason}.", address=address, reason=_first_line(error))
        ) from None
    except (FileNotFoundError, IsADirectoryError):
        raise DataError(_("{address}: there is no such object in the store.", address=address)) from None
    except DataError:
        raise
    except Exception as error:  # each store has its own
        reason = f"{type(error).__name__}: {_first_line(error)}"
        raise DataError(
            _(
                "{address} cannot be read ({reason}). Check the address, the network and your credentials.",
                address=address,
                reason=reason,
            )
        ) from None


def _copy(system: Any, path: str, address: str, cache: Path) -> Path:
    info = system.info(path)
    if info["type"] != "file":
        raise FileNotFoundError(path)
    version = hashlib.sha256(f"{address}\n{system.ukey(path)}".encode()).hexdigest()[:32]
    target = cache / version / Path(path).name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid4().hex[:8]}.partial")
    with naming_full_disk(target):
        try:
            with system.open(path, "rb") as source, temporary.open("wb") as stream:
                shutil.copyfileobj(source, stream, _BLOCK_BYTES)
            n_bytes, expected = temporary.stat().st_size, info.get("size")
            if expected is not None and n_bytes != expected:
                raise DataError(
                    _(
                        "{address}: {n_bytes:,} of {expected:,} bytes arrived. Run the same command again.",
                        address=address,
                        n_bytes=n_bytes,
                        expected=expected,
                    )
                )
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return target


def _first_line(error: object) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
