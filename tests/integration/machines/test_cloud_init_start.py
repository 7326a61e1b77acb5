"""The base image's cloud-init: what it says, how it ends and what it reads is cloud-init's own. Needs root."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from clusterctl_bootstrap.cloud_config import cloud_config
from clusterctl_rehearsal.machines.cloud_init_stage import PROGRAM
from clusterctl_rehearsal.machines.image import ensure_image, host_recipe

from tests.integration.bootstrap.bootstrapped import OWN
from tests.unit.bootstrap.node_examples import access, plan

OURS = "/usr/bin/cloud-init"
AS_PACKAGED = f"import sys; from cloudinit.cmd.main import main; sys.argv[0] = {OURS!r}; sys.exit(main())"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["nonsense"], 2), (["schema", "--config-file", "/none"], 1)]
)
def test_cloud_init_ends_as_without_our_script(cache: Path, arguments: list[str], code: int) -> None:
    image = ensure_image(cache, host_recipe(), print)
    plain, ours = (
        subprocess.run(["chroot", image, *program, *arguments], capture_output=True, text=True, timeout=60)
        for program in (["python3", "-c", AS_PACKAGED], [OURS])
    )
    assert plain.returncode == code
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)


READ_TWICE = """
import glob, json, runpy, sys, yaml
from cloudinit import safeyaml
plain, settings = yaml.load, glob.glob("/etc/cloud/**/*.cfg", recursive=True)
texts = json.load(sys.stdin) + [open(path).read() for path in settings]
faster = runpy.run_path(sys.argv[1])["reader_by_libyaml"](plain)
def read(load, text, loader):
    try:
        return repr(load(text, loader))
    except yaml.YAMLError as error:
        return str(error)
for loader in (yaml.SafeLoader, safeyaml._CustomSafeLoader, safeyaml._CustomSafeLoaderWithMarks):
    for text in texts:
        assert read(faster, text, loader) == read(plain, text, loader), (loader, text)
print(len(texts))
"""
TEXTS = (
    "{a: 1, b: [yes, 0o17, 017, 1e3, 2026-11-26, ~, 'x', null]}",
    "a: &x {k: 1}\nb: {<<: *x, l: 2}\nc: |\n  text\n    more\n",
    '{"a": "\\ud83d\\ude00 \\u00e4\\/\\n", "b": "😀 ä"}',  # of surrogates, libyaml makes an error
    "a: b: c",
    "a: [1, 2",
    "a: \x7f",
    "!!python/unicode text",
    "!!python/object:os.system {}",
    "",
)


def test_libyaml_reads_and_refuses_what_cloud_init_would(cache: Path) -> None:
    config = cloud_config(plan(env=OWN), access())
    image = ensure_image(cache, host_recipe(), print)
    texts = json.dumps([config, *TEXTS])
    argv = ["chroot", str(image), "python3", "-c", READ_TWICE, PROGRAM]
    done = subprocess.run(argv, input=texts, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > len(TEXTS) + 1
