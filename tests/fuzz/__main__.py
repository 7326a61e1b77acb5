"""A campaign of broken and hostile inputs: `scripts/fuzz --inputs 100000 --seed 1`; ends with 1 where one escaped."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.readers import all_readers, campaign

SHOWN_BYTES = 300


def main() -> int:
    """0 where every reader took, or refused in words of ours, all that it was given."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many inputs, over all readers")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same inputs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        escapes = campaign(all_readers(Path(folder)), inputs=asked.inputs, seed=asked.seed)
    for escape in escapes[:20]:
        sys.stdout.write(f"{escape.reader}: {escape.error!r}\n    {escape.data[:SHOWN_BYTES]!r}\n")
    sys.stdout.write(f"{asked.inputs} inputs, seed {asked.seed}: {len(escapes)} escapes\n")
    return 1 if escapes else 0


if __name__ == "__main__":
    sys.exit(main())
