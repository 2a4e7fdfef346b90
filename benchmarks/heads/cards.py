"""Store the role cards of a bundle for docs/concepts/heads.md, rounded, with the command that made them.

python benchmarks/heads/cards.py NAME BUNDLE [options of `manyheads heads show`]
python benchmarks/heads/cards.py quickstart runs/quickstart/bundle --sample 600
"""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def rounded(found: Any) -> Any:
    """Round numbers to four decimals and keep the last part of paths."""
    match found:
        case float():
            return round(found, 4)
        case dict():
            return {name: rounded(value) for name, value in found.items()}
        case list():
            return [rounded(value) for value in found]
        case str() if found.startswith("/"):
            return Path(found).name
        case _:
            return found


def main() -> None:
    """Run the command and store its results."""
    name, bundle, *options = sys.argv[1:]
    command = [sys.executable, "-m", "manyheads", "heads", "show", bundle, *options, "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    shown = [Path(option).name if "/" in option else option for option in options]
    metadata = {
        "command": " ".join(["manyheads heads show", f"runs/{name}/bundle", *shown, "--json"]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    found["bundle"] = f"runs/{name}/bundle"
    kept = metadata | rounded(found)
    (HERE / f"{name}.json").write_text(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
