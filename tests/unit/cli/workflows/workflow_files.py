"""Workflows for tests, and the guide's own where it lies beside the checkout."""

from __future__ import annotations

import re
import textwrap

from clusterctl.workflows.loading import LoadedWorkflow, Settings, read_workflow
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import Inventory

from tests.guides import OSMO
from tests.inventories import make_inventory

SCALED = """\
workflow:
  name: train
  resources:
    default: {gpu: {{ n_gpus }}, cpu: 4, memory: 8Gi}
  groups:
  - name: training
    tasks:
    {% for item in range(n_nodes) %}
    - name: {{ "master" if item == 0 else "worker_%d" % item }}
      {% if item == 0 %}
      lead: true
      outputs: [{dataset: {name: "{{ dataset }}-{{uuid}}", path: models}}]
      {% endif %}
      image: pytorch
      command: [bash]
      args: [/tmp/run.sh]
      files:
      - path: /tmp/run.sh
        contents: |
          train --of {{n_nodes}} --rank {{item}} --to {{host:master}} --out {{output}}/models
      - {path: /tmp/train.py, localpath: train.py}
    {% endfor %}

default-values:
  n_gpus: 8
  n_nodes: 2
  dataset: model
"""
SMALL = """\
workflow:
  name: small
  tasks:
  - name: only
    image: python
    command: [echo]
"""


def guide_files() -> list[str]:
    """The two workflows that the guide prints, as a person copies them."""
    blocks = re.findall(r"\.\. code-block:: (?:yaml|jinja)\n\n((?:  .*\n|\n)+)", OSMO.read_text())
    return [textwrap.dedent(block) for block in blocks[:2]]


def read(text: str, *words: str, files: dict[str, bytes] | None = None, **settings: str) -> LoadedWorkflow:
    """The workflow in `text`, `train.py` beside it; `words` are those of --set, `settings` variables of --set-env."""
    beside = {"train.py": b"print('{{host:master}}')", **(files or {})}

    def read_file(name: str) -> bytes:
        if name not in beside:
            raise FileNotFoundError(2, "No such file or directory")
        return beside[name]

    return read_workflow(
        text, source="w.yaml", settings=Settings(words=words, environment=settings), read_file=read_file
    )


def problems(text: str, *words: str) -> list[str]:
    """What is wrong with it, without the blanks before each; empty where nothing is."""
    try:
        read(text, *words)
    except ConfigError as e:
        return [" ".join(line.split()) for line in e.problems]
    return []


def inventory(nodes: int) -> Inventory:
    """A cluster of machines with eight GPUs each."""
    return make_inventory(size=nodes)
