"""The settings that only a new machine takes on, as texts that are kept in the state and read again.

When its trigger changes, a slot's machine is replaced. When the birth facts change, the machine lives on as it is, and
the new facts hold for machines that are made from then on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

DIGEST_LENGTH = 12
SPOT_FACT = "spot-max"
"""The birth fact that only spot machines have: the maximum price in the request to AWS."""


def trigger_text(facts: Mapping[str, object]) -> str:
    """The facts as JSON: texts as they are, all else as a digest."""
    return json.dumps(digested(facts), sort_keys=True, separators=(",", ":"))


def digested(facts: Mapping[str, object]) -> dict[str, str]:
    """The facts, each that is not a text replaced by its digest."""
    return {name: fact if isinstance(fact, str) else _digest(fact) for name, fact in facts.items()}


def trigger_facts(text: str) -> dict[str, str]:
    """The facts in a trigger; empty if the text is not one."""
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(fact) for name, fact in facts.items()} if isinstance(facts, dict) else {}


def birth_text(facts: Mapping[str, object]) -> str:
    """The facts in characters that a tag may have, what is not a text as a digest: `agent=0123456789ab imds=root …`."""
    return " ".join(f"{name}={fact}" for name, fact in digested(facts).items())


def birth_facts(text: str) -> dict[str, str]:
    """The facts in a birth text."""
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def late_facts(born: str | None, now: str | None) -> tuple[str, ...]:
    """The names of the facts that are in both birth texts with different values: a machine born with `born` lacks what
    they are `now`. Empty when one of the texts is not known.
    """
    if born is None or now is None:
        return ()
    before = birth_facts(born)
    return tuple(name for name, fact in birth_facts(now).items() if name in before and before[name] != fact)


def _digest(fact: object) -> str:
    text = json.dumps(fact, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
