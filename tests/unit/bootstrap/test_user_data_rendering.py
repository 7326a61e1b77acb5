"""User-data: the same bytes for the same plan, small enough, and readable by everything that has to read it."""

from __future__ import annotations

import dataclasses
import email
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from clusterctl_bootstrap.agent_source import agent_sources
from clusterctl_bootstrap.birth import script_hash
from clusterctl_bootstrap.boothook import boothook
from clusterctl_bootstrap.cloud_config import AGENT_FOLDER, BIRTH
from clusterctl_bootstrap.mount_clients import from_own_sources, lustre_of_ubuntu, mount_clients, signed_mountpoint
from clusterctl_bootstrap.node_plan import MountPlan, ScriptPlan
from clusterctl_bootstrap.render import USER_DATA_LIMIT_BYTES, UserDataTooLarge, fitted, render_user_data
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bootstrap.golden_user_data import GOLDEN, golden_texts
from tests.unit.bootstrap.node_examples import PLAN, access, plan

AGENT_BUDGET_BYTES = 10_700
OTHER_BUDGET_BYTES = 4_600
LONG = {"cluster": "a" * 40, "nodes": 256, "slot": 255, "rank": 255, "env": {"NCCL_DEBUG": "INFO"}}
KEYS = tuple(f"ssh-rsa {chr(65 + number) * 540} somebody@a-long-host-name" for number in range(3))
ROOM, ROOM_BESIDE_MOUNTS = 1_500, 800
"""Bytes that docs/nodes.md promises to scripts on a plain node, and on one with a mount of each kind."""
FILE_SYSTEM = "fs-0123456789abcdef0"
UBUNTU = (
    from_own_sources("nfs4", "nfs-common"),
    lustre_of_ubuntu("jammy"),
    signed_mountpoint("1.20.0", "x86_64", "673F E406 1506 BB46 9A0E F857 BE39 7A52 B086 DA5A"),
)
EVERY_MOUNT = {
    "scripts": (mount_clients(UBUNTU),),
    "packages": ("htop",),
    "mounts": (
        MountPlan(path="/shared", kind="fsx-lustre", source=f"{FILE_SYSTEM}.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"),
        MountPlan(path="/home/shared", kind="efs", source=f"{FILE_SYSTEM}.efs.us-west-2.amazonaws.com:/"),
        MountPlan(path="/data", kind="s3", source="our-sets/imagenet/", options="region=us-west-2", writable=False),
        MountPlan(path="/results", kind="s3", source="a-bucket-of-ours", options="region=us-west-2"),
        MountPlan(path="/scratch", kind="nvme", options="stripe"),
    ),
}
NOISE = "".join(str(number**7 % 9973) for number in range(9000))
CONTROL_CHARACTERS = "".join(map(chr, [*range(1, 32), 127, 0x85, 0xA0, 0x2028, 0xFEFF, 0xFFFF]))


def parts(data: bytes) -> Iterator[tuple[str, str]]:
    """Content type and text of each part, read as cloud-init 22.4 reads them: as text, then decoded."""
    message = email.message_from_string(gzip.decompress(data).decode())
    for part in message.walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            yield part.get_content_type(), payload.decode()


def config_of(data: bytes) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(dict(parts(data))["text/cloud-config"])
    return read


def written(config: dict[str, Any]) -> dict[str, str]:
    return {entry["path"]: entry["content"] for entry in config["write_files"]}


@pytest.mark.parametrize("name", golden_texts())
def test_what_a_node_is_given_is_the_golden_text(name: str) -> None:
    message = "if it is meant: python -m tests.unit.bootstrap.golden_user_data"
    assert golden_texts()[name] == (GOLDEN / name).read_text(encoding="utf-8"), message


def test_user_data_holds_the_host_key_the_node_key_and_the_barriers_secret_in_plain_sight() -> None:
    given = access()
    config = config_of(render_user_data(PLAN, given))
    everything = json.dumps(config)
    for secret in (given.host_private_key, given.trust.node_private_key, given.trust.barrier_secret):
        assert json.dumps(secret.strip())[1:-1] in everything
        assert secret not in repr(given)


def test_two_renderings_are_the_same_bytes() -> None:
    assert render_user_data(PLAN, access()) == render_user_data(PLAN, access())


def test_the_number_of_nodes_hardly_changes_the_size() -> None:
    two, many = (len(render_user_data(plan(nodes=nodes), access())) for nodes in (3, 256))
    assert abs(two - many) < 16


def test_user_data_is_plain_ascii_whatever_people_write() -> None:
    data = render_user_data(plan(env={"A": "ü😀"}), access(authorized_keys=("ssh-ed25519 AAAA jörg@laptop",)))
    assert gzip.decompress(data).isascii()


@given(value=st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"])))
def test_every_value_arrives_as_it_was_written(value: str) -> None:
    config = config_of(render_user_data(plan(env={"A": value}), access()))
    assert json.loads(written(config)[BIRTH])["env"] == {"A": value}


def test_characters_that_yaml_refuses_arrive_too() -> None:
    config = config_of(render_user_data(plan(env={"A": CONTROL_CHARACTERS}), access()))
    assert json.loads(written(config)[BIRTH])["env"] == {"A": CONTROL_CHARACTERS}


def test_the_budgets_hold_with_long_names_and_several_keys() -> None:
    data = render_user_data(plan(**LONG), access(255, authorized_keys=KEYS))
    without = written(config_of(data))
    agent = [without.pop(path) for path in list(without) if path.startswith(AGENT_FOLDER)]
    agent_bytes = len(gzip.compress("".join(agent).encode(), mtime=0))
    assert agent_bytes <= AGENT_BUDGET_BYTES
    assert len(data) - agent_bytes <= OTHER_BUDGET_BYTES
    assert len(data) <= USER_DATA_LIMIT_BYTES


@pytest.mark.parametrize(("changes", "free"), [({}, ROOM), (EVERY_MOUNT, ROOM_BESIDE_MOUNTS)])
def test_scripts_have_the_room_that_the_docs_promise(changes: dict[str, Any], free: int) -> None:
    assert f"{free:,} bytes" in (Path(__file__).parents[3] / "docs/nodes.md").read_text(encoding="utf-8")
    assert USER_DATA_LIMIT_BYTES - len(render_user_data(plan(**changes), access())) >= free


def test_too_much_is_refused_with_the_size() -> None:
    with pytest.raises(
        UserDataTooLarge, match=r"the user-data of train-2 is \d\d,\d+ bytes, EC2 takes 16,384: shorten env"
    ) as caught:
        render_user_data(plan(env={"NOISE": NOISE}, scripts=SCRIPTS), access())
    assert caught.value.size_bytes > USER_DATA_LIMIT_BYTES


SCRIPTS = (
    ScriptPlan(name="mount-clients", content="#!/bin/sh\n", when="once", at="mount-clients"),
    ScriptPlan(name="first.sh", content="echo ü\n", when="boot", at="before-mounts"),
    ScriptPlan(name="setup.sh", content=NOISE, when="once", at="before-ready"),
)


def test_of_scripts_without_room_the_hashes_travel_alone() -> None:
    files = written(config_of(render_user_data(plan(scripts=SCRIPTS), access())))
    assert [path for path in files if "/scripts/" in path] == ["/var/lib/clusterctl/scripts/mount-clients"]
    rows = json.loads(files[BIRTH])["scripts"]
    assert rows[0] == ["mount-clients", "once", "mount-clients"], "the plan's own is short, and stays"
    assert rows[1][:3] == ["first.sh", "boot", "before-mounts"]
    assert [row[3] for row in rows[1:]] == [script_hash(script.content) for script in SCRIPTS[1:]]


def test_scripts_with_room_travel_whole() -> None:
    node = plan(scripts=SCRIPTS[:2])
    assert fitted(node, access()) is node


def test_scripts_and_their_names_travel_to_root_alone() -> None:
    script = ScriptPlan(name="setup.sh", content="echo \x7f ü\n", when="once", at="before-ready")
    config = config_of(render_user_data(plan(scripts=(script,), packages=("htop",)), access()))
    (entry,) = (row for row in config["write_files"] if row["path"].endswith("/scripts/setup.sh"))
    assert (entry["permissions"], entry["content"]) == ("0700", script.content)
    born = json.loads(written(config)[BIRTH])
    assert (born["scripts"], born["packages"]) == ([["setup.sh", "once", "before-ready"]], ["htop"])


def test_the_boothook_comes_first_and_begins_with_its_interpreter() -> None:
    (first, hook), (second, config) = parts(render_user_data(PLAN, access()))
    assert (first, second) == ("text/cloud-boothook", "text/cloud-config")
    assert hook.startswith("#!/bin/sh\n")
    assert config.startswith("#cloud-config\n")


def test_the_boothook_arms_before_the_metadata_rule_and_the_agent() -> None:
    """Nothing may fail before the deadline is armed."""
    hook = boothook(PLAN)
    armed = hook.index("systemctl restart clusterctl-deadline-clock.timer")
    assert armed < hook.index("nft -f -")
    assert armed < hook.index("systemctl start --no-block $node")
    assert "set -e" not in hook


@pytest.mark.parametrize("imds", ["root", "users"])
def test_the_boothook_holds_this_nodes_values_and_no_placeholder(imds: str) -> None:
    hook = boothook(plan(imds=imds))
    assert f"\nIMDS={imds}\n" in hook
    assert "\nDEADLINE=1796149800\n" in hook
    assert "\nCLUSTER_ID=3f9c0a51b7de\n" in hook
    assert "=@" not in hook.replace("OnCalendar=@", "").replace("ExecStart=@/bin/sh @clusterctl", "")


def test_the_agent_travels_whole() -> None:
    files = written(config_of(render_user_data(PLAN, access())))
    assert {path.removeprefix(f"{AGENT_FOLDER}/"): text for path, text in files.items() if AGENT_FOLDER in path} == (
        agent_sources()
    )


def test_mounts_travel_as_they_are_planned() -> None:
    mount = MountPlan(path="/data", kind="s3", source="bucket/prefix/", options="region=us-west-2", writable=False)
    config = config_of(render_user_data(plan(mounts=(mount,)), access()))
    assert json.loads(written(config)[BIRTH])["mounts"] == [
        {name: value for name, value in dataclasses.asdict(mount).items() if name != "types"}
    ]


def test_the_login_user_has_the_keys_and_no_password() -> None:
    (user,) = config_of(render_user_data(PLAN, access(authorized_keys=KEYS)))["users"]
    assert (user["name"], user["lock_passwd"], user["ssh_authorized_keys"]) == ("ubuntu", True, list(KEYS))
