"""Other products' guides, whose own snippets and files some tests run; they are no part of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

GUIDES = Path(__file__).resolve().parents[2] / "shared" / "guides"
FLOW = GUIDES / "flow-multi-node.txt"
OSMO = GUIDES / "osmo-multi-node.rst"
SATURN = GUIDES / "saturn-multi-node.txt"

needs_guides = pytest.mark.skipif(
    not GUIDES.is_dir(), reason=f"runs other products' guides, which this repository does not have: no {GUIDES}"
)
