"""A stack's program runs as Python runs a script, but its modules are not taken apart at its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clusterctl.engine.environment import PYTHON

RUNNER = "pulumi-language-python-exec"


def run(folder: Path, text: str, *arguments: str, python: str | Path = PYTHON) -> subprocess.CompletedProcess[str]:
    """The end of `text` as the script that the language host starts."""
    script = folder / RUNNER
    script.write_text(text)
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    argv = [str(python), str(script), "--monitor", *arguments]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("ends", "code", "stderr"),
    [
        ("sys.exit(0)", 0, ""),
        ("sys.exit(32)", 32, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('no such region')", 1, "no such region\n"),
        ("pass", 0, ""),
    ],
)
def test_a_program_ends_with_its_own_code_and_words(tmp_path: Path, ends: str, code: int, stderr: str) -> None:
    done = run(tmp_path, f"import atexit, sys\natexit.register(print, 'tidied')\nprint('made')\n{ends}\n")
    assert (done.returncode, done.stdout, done.stderr) == (code, "made\ntidied\n", stderr)


def test_an_error_of_a_program_is_shown_with_its_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "raise RuntimeError('broken')\n")
    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: broken\n")


def test_a_program_sees_what_it_would_see_without_us(tmp_path: Path) -> None:
    text = "import json, sys\nprint(json.dumps([__name__, __file__, sys.argv, sys.path]))\n"
    ours, plain = (run(tmp_path, text, "127.0.0.1:1", "a b", python=python) for python in (PYTHON, sys.executable))
    assert json.loads(ours.stdout) == json.loads(plain.stdout)


def test_modules_are_not_taken_apart_at_the_end(tmp_path: Path) -> None:
    kept = "class Kept:\n    def __del__(self, say=print):\n        say('taken apart')\njson.kept = Kept()\n"
    text = f"import json, sys\n{kept}sys.exit(0)\n"
    assert run(tmp_path, text, python=sys.executable).stdout == "taken apart\n"
    assert run(tmp_path, text).stdout == ""


ASKED = """
import dill, json, sys
import pulumi_aws as aws
from pulumi_aws.ec2 import SecurityGroup, outputs
from pulumi_aws import s3
found = [
    aws.ec2.Vpc, aws.ec2.VpcArgs, aws.ec2.get_ami, aws.ec2.get_ami_output, aws.ec2.InstanceType, SecurityGroup,
    aws.ec2.LaunchTemplateNetworkInterfaceArgs, aws.iam.Role, s3.Bucket, aws.get_caller_identity,
]
print(json.dumps([[each.__module__, each.__qualname__, type(each).__name__] for each in found]))
print(outputs.__name__, aws.ec2.vpc is sys.modules["pulumi_aws.ec2.vpc"], hasattr(aws.ec2, "get_ami_id"))
print(dill.loads(dill.dumps(aws.ec2, recurse=True)) is aws.ec2)
"""
EVERYTHING = """
import pulumi_aws as aws
aws.efs.FileSystem
from pulumi_aws.efs import *
print(sorted(name for name in globals() if not name.startswith("__")))
print([name for name in dir(aws.ec2) if not name.startswith("__")], aws.ec2.__name__)
try:
    aws.iam.Rule
except AttributeError as e:
    print(e)
"""

ON_USE = """
import pulumi
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
class Own(ResourceProvider):
    def create(self, props):
        raise NotImplementedError(pulumi.__name__)
print(serialize_provider(Own()))
print([name for name in dir(pulumi.automation) if not name.startswith("__")])
from pulumi.automation import LocalWorkspace, errors
import pulumi.automation.events as events
print(LocalWorkspace.__module__, errors.__name__, events.__name__, pulumi.automation.Stack.__qualname__)
"""


@pytest.mark.parametrize("text", [ASKED, EVERYTHING, ON_USE], ids=["names", "all", "on use"])
def test_a_program_gets_of_the_sdk_what_it_would_get_without_us(tmp_path: Path, text: str) -> None:
    ours, plain = (run(tmp_path, text, python=python) for python in (PYTHON, sys.executable))
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, 0)


def test_of_the_sdk_only_what_a_program_asks_for_is_loaded(tmp_path: Path) -> None:
    text = "import sys\nimport pulumi_aws as aws\naws.ec2.Vpc\nprint('\\n'.join(sys.modules))\n"
    ours, plain = (run(tmp_path, text, python=python).stdout.split() for python in (PYTHON, sys.executable))
    unused = {"pulumi_aws.ec2.instance", "pulumi.automation._stack", "dill._dill"}
    assert unused <= set(plain)
    assert "pulumi_aws.ec2.vpc" in ours
    assert not unused & set(ours)


LOGGED = """
import inspect, json, pulumi
from pulumi import log
sent = []
class Engine:
    def Log(self, request):
        sent.append([request.severity, request.message])
pulumi.runtime.settings.SETTINGS.engine = Engine()
log.debug("made", None, 0)
pulumi.debug("made")
log.info("ready")
log.warn("late")
print(json.dumps([sent, [str(each) for each in inspect.signature(log.debug).parameters]]))
"""


def test_what_is_said_for_debugging_is_not_sent_and_all_else_is(tmp_path: Path) -> None:
    ours, plain = (run(tmp_path, LOGGED, python=python) for python in (PYTHON, sys.executable))
    (sent, parameters), (all_sent, plain_parameters) = (json.loads(done.stdout) for done in (ours, plain))
    assert sent == [[1, "ready"], [2, "late"]]
    assert all_sent == [[0, "made"], [0, "made"], *sent]
    assert parameters == plain_parameters
