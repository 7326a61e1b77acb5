"""cluster.yaml as a person gets it wrong: every problem at once, with its line, and nothing but ConfigError."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.infra.config.config_texts import CATALOG, SMALL, parsed, problems


def test_a_small_file_is_enough() -> None:
    config = parsed(SMALL)
    assert (config.name, config.nodes, config.caps.runtime) == ("train", 4, timedelta(hours=24))
    assert config.instance_type_name(CATALOG) == "p5.48xlarge"


def test_all_problems_are_said_at_once_in_the_order_of_the_file() -> None:
    text = (
        "name: train\n"
        "region: us-west-2\n"
        "nodes: 0\n"
        "gpus: h100:9\n"
        "placemnt: cluster\n"
        "caps: {runtime: 12, price_usd_per_hour: .nan}\n"
        "storage:\n"
        "  - mount: /shared\n"
        "    fsx-lustre: {size: 3600GiB}\n"
        "zone: eu-west-1a\n"
    )
    assert problems(text) == [
        "  line 3   nodes: '0': a cluster has at least 1 node; to end one: clusterctl down",
        "  line 4   gpus: 'h100:9': a node has at most 8 × H100 (p5.48xlarge)",
        "  line 5   placemnt: unknown key (did you mean placement?)",
        "  line 6   caps.price_usd_per_hour: '.nan': not a number of US dollars, such as 60 or 2.5",
        "  line 6   caps.runtime: '12': a number without a unit; write 90m, 12h, 2d or 1h30m",
        "  line 9   storage[0].fsx-lustre.size: '3600GiB': not a size that AWS makes: 2400GiB or 4800GiB",
        "  line 10  zone: 'eu-west-1a': not a zone of us-west-2, such as us-west-2b",
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nodes: -1", "at least 1 node"),
        ("nodes: four", "not a whole number"),
        ("nodes: 2.5", "not a whole number"),
        ("nodes: 1001", "at most 1000 nodes"),
        ("nodes: 010", "a leading 0 may mean octal; write 10"),
        ("nodes:", "empty; give a value or leave the key out"),
        ("nodes: [4]", "nodes: not a single value"),
        ("region: us-west-22", "no AWS region (did you mean us-west-2?)"),
        ("region: us-west-2a", "a zone (did you mean region: us-west-2, zone: us-west-2a?)"),
        ("region: mars", "no AWS region"),
        ("zone: us-west-2", "not a zone of us-west-2"),
        ("gpus: h100:4", "a node with H100 has 1 (p5.4xlarge) or 8 (p5.48xlarge) of them"),
        ("gpus: a100:3", "'a100:3': a node with A100 has 8 (p4d.24xlarge p4de.24xlarge) of them"),
        ("gpus: h1000:8", "no such GPU (did you mean h100?)"),
        ("gpus: a100-60gb:8", "AWS has A100 40GB and A100 80GB only"),
        ("gpus: [h100:8, h900:8]", "gpus[1]: 'h900:8'"),
        ("gpus: [h100:8, h200:8]\ncapacity: spot", "a list is for machines on demand; not built yet for spot machines"),
        ("gpus: []", "an empty list"),
        ("gpus: {h100: 8}", "not a single value"),
        ("gpus: p5.48xlarge", "not a GPU specification"),
        (
            "gpus: b300:8\nregion: us-east-1",
            "not offered in us-east-1 (prices of 2026-01); p6-b300.48xlarge: us-west-2",
        ),
        ("gpus: t4g:1\nfabric: required", "fabric: required, but g5g.2xlarge"),
        ("instance_type: p5.48xlarge", "gpus is written too; keep one of them"),
        ("image: dlami-base-ubuntu-22.40", "did you mean dlami-base-ubuntu-22.04?"),
        ("image: ami-123", "an AMI id is ami- and 8 or 17 hex digits"),
        ("placement: spread", "allowed are cluster, none"),
        ("capacity: on_demand", "'on_demand': allowed are on-demand, spot, capacity-block, reservation (did you mean"),
        ("capacity: reserved", "'reserved': allowed are on-demand, spot"),
        ("capacity: capacity-block", "write which one, as capacity_block: cr-…, and leave capacity out"),
        ("reservation: cr-1", "'cr-1': not the id of a capacity reservation; one looks like cr-0a1b"),
        ("capacity_block: cr-1", "capacity_block: 'cr-1': not the id of a capacity reservation; one looks like"),
        ("capacity_block: {find: {nodes: 4}}", "capacity_block.find.hours: missing"),
        ("capacity_block: {id: cr-0a1b2c3d, find: {hours: 24}}", "write one of id and find, or cr-… alone"),
        ("capacity_block: {find: {hours: 30}}", "then whole weeks up to 4368 h (did you mean 48?)"),
        ("capacity_block: {find: {hours: 360}}", "'360': AWS sells whole days up to 336 h"),
        ("capacity_block: {find: {hours: 24, start: 2026-12-01}}", "a day without a time"),
        ("capacity_block: {find: {hours: 24, start: soon}}", "'soon': not a moment such as 2026-12-01T08:00Z"),
        ("capacity_block: {find: {hours: 24, nodes: 1}}", "capacity_block.find.nodes: '1': the cluster has 4"),
        ("capacity_block: {find: {hours: 24, gpus: a100:8}}", "the nodes are p5.48xlarge, which has others"),
        ("capacity_block: {find: {hours: 24, hour: 3}}", "unknown key (did you mean hours?)"),
        ("gpus: a10g:1\ncapacity_block: {find: {hours: 24}}", "AWS sells no capacity blocks of g5.xlarge, only of"),
        ("nodes: 65\ncapacity_block: {find: {hours: 24}}", "65 nodes: AWS sells blocks of at most 64 machines"),
        ("gpus: [h200:8, h100:8]\ncapacity_block: {find: {hours: 24}}", "a capacity block has its type: name that one"),
        ("reservation: cr-0a1b2c3d\ncapacity_block: cr-0a1b2c3e", "reservation is written too; keep one of them"),
        ("reservation: cr-0a1b2c3d\ncapacity: spot", "'spot': reservation is written too, and its machines are not"),
        ("capacity_block: cr-0a1b2c3d\nplacement: cluster", "they stand close to each other without one"),
        ("fabric: yes", "'yes': allowed are auto, required, none"),
        ("access: public", "'public': not a mapping with keys authorized_keys, bastion, mode, ssh_from, user"),
        ("access: {ssh_from: 1.2.3.4/32}", "not a list: write [a, b]"),
        ("access: {ssh_from: [1.2.3.4]}", "did you mean 1.2.3.4/32?"),
        ("access: {ssh_from: [1.2.3.4/24]}", "did you mean 1.2.3.0/24?"),
        ("access: {ssh_from: [1.2.3.4/255.255.255.255]}", "did you mean 1.2.3.4/32?"),
        ("access: {ssh_from: ['::1/128']}", "IPv6 is not used"),
        ("access: {ssh_from: [me]}", "not an IPv4 network"),
        ("access: {ssh_from: [1.2.3.4/32, 1.2.3.4/32]}", "access.ssh_from[1]: '1.2.3.4/32': written twice"),
        ("access: {user: ec2-user}", "the login user is ubuntu"),
        ("access: {sshfrom: []}", "access.sshfrom: unknown key (did you mean ssh_from?)"),
        ("network: {vpc_cidr: 10.0.0.0/8}", "AWS takes /16 to /28"),
        ("network: {node_subnet_cidr: 10.1.0.0/20}", "not inside vpc_cidr 10.0.0.0/16"),
        ("network: {service_subnet_cidr: 10.0.8.0/24}", "overlaps node_subnet_cidr 10.0.0.0/20"),
        ("network: {adopt: {vpc_id: vpc-1, node_subnet_id: subnet-1}}", "'vpc-1': not the id of a VPC; one looks like"),
        (
            "network: {vpc_cidr: 10.0.0.0/16, adopt: {vpc_id: vpc-0a1b2c3d, node_subnet_id: subnet-0a1b2c3d}}",
            "adopt is written too, and that network has ranges of its own",
        ),
        ("runtime: 12h", "runtime: unknown key (did you mean caps.runtime?)"),
        ("budget_usd: 1000", "budget_usd: unknown key (did you mean caps.budget_usd?)"),
        ("price_usd_per_hour: 60", "price_usd_per_hour: unknown key (did you mean caps.price_usd_per_hour?)"),
        ("dead_man: 1h", "dead_man: unknown key (did you mean caps.dead_man?)"),
        ("idle: 1h", "idle: unknown key (did you mean caps.idle?)"),
        ("caps: {runtime: 31d}", "longer than 30d"),
        ("caps: {runtime: 12:30:00}", "'12:30:00': not a duration"),
        ("caps: {budget_usd: .inf}", "not a number of US dollars"),
        ("caps: {budget_usd: 0}", "above 0; leave the key out for no cap"),
        ("caps: {budget_usd: -5}", "'-5': an amount of US dollars is a number above 0"),
        ("caps: {budget_usd: 20000000000}", "more US dollars than anybody has"),
        ("caps: {price_usd_per_hour: -1}", "'-1': an amount of US dollars is a number above 0"),
        ("caps: {price_usd_per_hour: 5504}", "'5504': a cap above $1000 an hour refuses nothing"),
        (
            "kms_key: alias/mine",
            "'alias/mine': not the ARN of a KMS key; one looks like arn:aws:kms:us-west-2:123456789012",
        ),
        (
            "kms_key: arn:aws:kms:eu-west-1:123456789012:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d",
            "a key of eu-west-1, and the cluster is in us-west-2",
        ),
        ("root_disk: 4GiB", "'4GiB': a root disk has between 8GiB and 65536GiB"),
        ("root_disk: 65TiB", "a root disk has between 8GiB and 65536GiB"),
        ("root_disk: 500", "'500': a number without a unit; write 500GiB"),
        ("root_disk: 500GB", "did you mean 500GiB?"),
        ("caps: {total_usd_per_hour: 0}", "above 0; leave the key out for no cap"),
        ("caps: {total_usd_per_hour: 1000001}", "a cap above $1000000 an hour refuses nothing"),
        ("caps: {total_usd: 5}", "caps.total_usd: unknown key (did you mean total_usd_per_hour?)"),
        ("env: {1BAD: x}", "env: 1BAD: not the name of an environment variable"),
        ("env: [A=1]", "not a mapping of names to values"),
        ("env: {NODE_RANK: 0}", "NODE_RANK: clusterctl sets it, differently on each node"),
        ("env: {CLUSTERCTL_SLOT: 1}", "CLUSTERCTL_SLOT: clusterctl sets it"),
        ('env: {A: "two\\nlines"}', "A: holds a newline, which SSH sessions and containers cannot be given"),
        ("env: {A: }", "A: empty; write '' for an empty text"),
        ("tags: {aws:name: x}", "keys that begin with aws: or clusterctl: are taken"),
        ("tags: {a b: x}", "a tag's key is"),
        ("tags: {'a,b': x}", "a tag's key is"),
        ("tags: {teams: 'a,b'}", "teams: a tag's value is"),
        ("tags: {name: vision}", "name: AWS takes it for the same key as Name"),
        ("tags: {team: a, Team: b}", "Team: AWS takes it for the same key as team"),
        ("packages: ['htop; reboot']", "packages[0]: 'htop; reboot': not the name of a package, such as htop"),
        ("scripts: [bad name.sh]", "not a file whose name has letters, digits"),
        ("scripts: [{run: a.sh, when: daily}]", "scripts[0].when: 'daily': allowed are once, boot"),
        ("scripts: [{run: a.sh, at: ready}]", "allowed are before-mounts, before-ready, after-ready"),
        ("scripts: [{runn: a.sh}]", "scripts[0].runn: unknown key (did you mean run?)"),
        ("scripts: [a/x.sh, b/x.sh]", "scripts[1]: 'b/x.sh': a/x.sh has the same name"),
        ("scripts: [packages]", "clusterctl has a log with this name"),
        ("ranks: random", "allowed are slot, topology"),
        ("imds: nobody", "allowed are root, users"),
        ("name: Train", "lower-case letters, digits and inner hyphens only (did you mean train?)"),
        ("name: -train", "(did you mean train?)"),
        ("name: train.prod", "(did you mean train-prod?)"),
        ("name: " + "a" * 41, "41 characters; the most is 40"),
        ("name: sg-train", "for themselves"),
        ("name: ''", "empty; write a name"),
        ('owner: "a\\tb"', "holds a line break or control character"),
        ("owner: Ada (ML)", "'Ada (ML)': it is a tag's value"),
        ("owner: ''", "it is a tag's value: 1 to 256 letters"),
    ],
)
def test_a_wrong_value_is_shown_with_what_is_allowed(line: str, sentence: str) -> None:
    keys = {each.partition(":")[0] for each in line.splitlines()}
    kept = [each for each in SMALL.splitlines() if each.partition(":")[0] not in keys]
    text = "\n".join(problems("\n".join([*kept, line])))
    assert sentence in text
    assert "pydantic" not in text
    assert "Value error" not in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("p5.24xlarge", "(did you mean p5.48xlarge or p5.4xlarge?)"),
        ("P5.48xlarge", "(did you mean p5.48xlarge?)"),
        ("p6e-gb200.36xlarge", "not built yet: sold as whole UltraServers"),
        ("p6-b200.48xlarge", "not offered in eu-west-1 (prices of 2026-01); it is in us-east-1, us-east-2, us-west-2"),
        ("g5g.xlarge", "not made for arm64 (g5g.xlarge)"),
        (
            "t3.micro",
            "placement: 'cluster': AWS takes no t3.micro into a cluster placement group; write placement: none",
        ),
        ("[m5.xlarge, p6-b200.48xlarge]", "instance_type[1]: 'p6-b200.48xlarge': not offered in eu-west-1"),
        ("[m5.xlarge, t3.micro]", "AWS takes no t3.micro into a cluster placement group"),
    ],
)
def test_an_instance_type_is_checked(name: str, sentence: str) -> None:
    image = "dlami-base-amazon-linux-2023" if name.startswith("g5g") else "dlami-base-ubuntu-22.04"
    text = f"name: train\nregion: eu-west-1\nnodes: 1\nimage: {image}\ninstance_type: {name}\n"
    assert sentence in "\n".join(problems(text))


def test_fabric_required_needs_a_type_with_efa() -> None:
    text = "name: t\nregion: us-west-2\nnodes: 1\ninstance_type: g5.xlarge\nfabric: required\n"
    assert problems(text) == [
        "  line 5   fabric: 'required': g5.xlarge has no EFA; choose a type that has, or fabric: none"
    ]


def test_fabric_required_chooses_among_the_types_with_efa() -> None:
    config = parsed(SMALL.replace("h100:8", "a10g:1") + "fabric: required\n")
    assert config.instance_type_name(CATALOG) == "g5.8xlarge"


def test_a_choice_among_several_types_is_said() -> None:
    choice = parsed(SMALL.replace("h100:8", "h200:8")).instance_choice(CATALOG)
    assert (choice.name, choice.others) == ("p5en.48xlarge", ("p5e.48xlarge",))
    assert choice.note is not None
    assert "h200:8 is p5en.48xlarge: the cheapest known in us-west-2" in choice.note


def test_what_is_missing_is_named_without_a_line() -> None:
    assert problems("nodes: 1\n") == [
        "  name: missing; every cluster needs it",
        "  region: missing; every cluster needs it",
        "  gpus or instance_type is missing: write gpus: h100:8, or instance_type: p5.48xlarge",
    ]


def test_a_private_key_is_refused_and_not_repeated() -> None:
    (line,) = problems(SMALL + "access: {authorized_keys: ['-----BEGIN OPENSSH PRIVATE KEY----- c2VjcmV0']}\n")
    assert "this is a private key" in line
    assert "c2VjcmV0" not in line


def test_an_override_takes_the_place_of_the_file() -> None:
    config = parsed(SMALL, {"nodes": "8", "runtime": "2h", "mode": "private"})
    assert (config.nodes, config.caps.runtime, config.access.mode) == (8, timedelta(hours=2), "private")


def test_an_overriding_instance_type_takes_the_place_of_gpus() -> None:
    config = parsed(SMALL, {"instance_type": "p4d.24xlarge"})
    assert (config.gpus, config.instance_type) == (None, "p4d.24xlarge")


def test_a_wrong_override_is_named_by_its_config_key() -> None:
    assert problems(SMALL, {"nodse": "3", "nodes": "0", "runtime": "5"}) == [
        "  config clusterctl:nodse: unknown key (did you mean nodes?)",
        "  config clusterctl:nodes: '0': a cluster has at least 1 node; to end one: clusterctl down",
        "  config clusterctl:runtime: '5': a number without a unit; write 90m, 12h, 2d or 1h30m",
    ]
