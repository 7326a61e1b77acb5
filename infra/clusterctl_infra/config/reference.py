"""docs/config.md, made from the models: what cluster.yaml may say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any  # JSON Schema

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.overrides import OVERRIDES
from clusterctl_infra.config.schema import hosts_schema, json_schema

EXAMPLE = """\
name: train
region: us-west-2
nodes: 4
gpus: h100:8                 # or instance_type: p5.48xlarge
fabric: required             # EFA or nothing: never a silent fall-back to TCP
access: {mode: public, ssh_from: [203.0.113.7/32]}
caps:
  price_usd_per_hour: 60     # per node
  budget_usd: 1000           # the whole cluster, ever
  runtime: 12h
env:
  NCCL_DEBUG: INFO
"""
HEAD = """\
# cluster.yaml

This page is generated from the models by `scripts/docs`.

```yaml
{example}```

Values are read by the field that they belong to, never by YAML's own guesses: `name: no` is the name `no`. Durations
are `90m`, `12h`, `2d` or `1h30m`; sizes are `1200GiB` or `4.8TiB`; prices are plain US dollars. An unknown key is an
error, and all problems of a file are reported at once. `clusterctl schema` prints the JSON Schema for editors.
"""
_CELL = str.maketrans({"|": "\\|", "\n": " "})


def reference(catalog: Catalog) -> str:
    """The page's text."""
    schema = json_schema()
    parts = [HEAD.format(example=EXAMPLE), "## The keys\n\n" + _table(schema)]
    for key, section in _sections(schema, schema["$defs"]):
        parts.append(f"## {key}\n\n{section['description']}\n\n{_table(section)}")
    parts += [_images(catalog), _overrides(), *_hosts()]
    return "\n".join(parts)


def _sections(
    schema: dict[str, Any], definitions: dict[str, dict[str, Any]], start: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path and the schema of every mapping inside, in the order of the file."""
    for key, field in schema["properties"].items():
        name = _reference_in(field)
        if name is None:
            continue
        section = definitions[name]
        path = f"{start}{key}[]" if field.get("type") == "array" else f"{start}{key}"
        yield path, section
        yield from _sections(section, definitions, f"{path}.")


def _table(section: dict[str, Any]) -> str:
    required = set(section.get("required", ()))
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, field in section["properties"].items():
        default = "**required**" if key in required else _default(field)
        meaning = str(field.get("description", "")).translate(_CELL)
        rows.append(f"| `{key}` | {_value(field)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _value(field: dict[str, Any]) -> str:
    """What may be written for the field, in words or examples."""
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if _reference_in(field) is not None:
        texts = "texts or " if "anyOf" in field.get("items", {}) else ""
        if field.get("type") == "array":
            return f"list of {texts}mappings, below"
        is_text_too = any(inner.get("type") == "string" for inner in field.get("anyOf", ()))
        return f"{'text or ' if is_text_too else ''}mapping, below"
    if field.get("examples"):
        return ", ".join(f"`{_shown(each)}`" for each in field["examples"])
    for inner in field.get("anyOf", ()):
        if inner.get("type") != "null":
            return _value(inner)
    if field.get("type") == "array":
        return f"list of {_value(field['items'])}"
    return {"string": "text", "boolean": "`true`, `false`", "integer": "whole number"}.get(field.get("type", ""), "")


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "" if default in (None, [], "", {}) else f"`{_shown(default)}`"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _reference_in(field: dict[str, Any]) -> str | None:
    """The name of the definition that the field's value follows."""
    items = field.get("items", {})
    places = [field, *field.get("anyOf", ()), items, *items.get("anyOf", ())]
    found = next((place["$ref"] for place in places if "$ref" in place), None)
    return None if found is None else str(found).rpartition("/")[2]


def _images(catalog: Catalog) -> str:
    rows = [f"| `{name}` | {image.meaning} | {', '.join(image.parameters)} |" for name, image in catalog.images.items()]
    return "## Images\n\n| image | meaning | architectures |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _overrides() -> str:
    head = "## Overrides by a stack's Pulumi config\n\n`pulumi config set clusterctl:nodes 8` stands for `nodes: 8`."
    keys = ", ".join(f"`{key}`" for key in OVERRIDES)
    return f"{head} Keys: {keys}. `gpus` and `instance_type` take each other's place.\n"


def _hosts() -> Iterator[str]:
    """The keys of the other kind of file, for existing machines."""
    schema = hosts_schema()
    head = "## With `target: hosts`\n\nExisting machines have these keys instead of those above: [hosts](hosts.md)."
    yield f"{head}\n\n{_table(schema)}"
    for key, section in _sections(schema, schema["$defs"]):
        yield f"### hosts: {key}\n\n{section['description']}\n\n{_table(section)}"
