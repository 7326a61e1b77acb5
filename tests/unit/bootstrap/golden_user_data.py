"""Writes tests/golden/user-data/ anew: `python -m tests.unit.bootstrap.golden_user_data`.

The golden files leave out the agent's code, which changes often, and all secrets.
"""

from __future__ import annotations

import json
from pathlib import Path

from clusterctl_bootstrap.boothook import boothook
from clusterctl_bootstrap.cloud_config import AGENT_FOLDER, BIRTH, cloud_config
from clusterctl_bootstrap.trust import BARRIER_SECRET, NODE_KEY

from tests.unit.bootstrap.node_examples import PLAN, access, plan

GOLDEN = Path(__file__).parents[2] / "golden" / "user-data"
SECRETS = {
    NODE_KEY: "the private key that nodes log in to each other with",
    BARRIER_SECRET: "the secret of the start barrier",
}
SIZES = (1, 4, 256)


def golden_texts() -> dict[str, str]:
    """File name → text: the boothook of one node, and the cloud-config of the last slot of each size."""
    configs = {f"slot-{nodes - 1}-of-{nodes}.json": readable_config(nodes) for nodes in SIZES}
    return {"boothook.sh": boothook(PLAN), **configs}


def readable_config(nodes: int) -> str:
    """The cloud-config of the last of `nodes`, one line of a file to a line."""
    last = nodes - 1
    text = cloud_config(plan(nodes=nodes, slot=last, rank=last, env={"NCCL_DEBUG": "INFO"}), access(last))
    config = json.loads(text.removeprefix("#cloud-config\n"))
    config["ssh_keys"]["ed25519_private"] = f"(the private host key of slot {last})"
    config["write_files"] = [
        {**entry, "content": lines(entry)}
        for entry in config["write_files"]
        if not entry["path"].startswith(AGENT_FOLDER)
    ]
    return json.dumps(config, indent=1) + "\n"


def lines(entry: dict[str, str]) -> list[str]:
    if entry["path"] in SECRETS:
        return [f"({SECRETS[entry['path']]})"]
    if entry["path"] != BIRTH:
        return entry["content"].splitlines()
    birth = {**json.loads(entry["content"]), "agent": "(names the agent's code)"}
    return json.dumps(birth, indent=1, sort_keys=True).splitlines()


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, text in golden_texts().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
        print(GOLDEN / name)
