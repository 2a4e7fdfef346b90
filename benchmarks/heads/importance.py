"""Store how far measures of importance agree: `python benchmarks/heads/importance.py NAME=BUNDLE …`.

Writes importance.json beside this file: Spearman's ρ of each measure with zero ablation, of each bundle.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the command for every bundle and store the agreements."""
    models, found = {}, {}
    for argument in sys.argv[1:]:
        name, _, bundle = argument.partition("=")
        command = [
            sys.executable,
            "-m",
            "manyheads",
            "heads",
            "importance",
            bundle,
            "--by",
            "gradient",
            "--by",
            "score",
        ]
        found = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout)
        models[name] = {
            measure: {key: round(value, 4) for key, value in agreement.items()}
            for measure, agreement in found["agreement"].items()
        }
    kept = {name: found[name] for name in ("date", "machine", "sample")} | {"models": models}
    (HERE / "importance.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
