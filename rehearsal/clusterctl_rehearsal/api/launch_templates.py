"""Launch templates and their versions: stored under the provider's names, translated to and from the API's.

The API writes `ImageId`, tags as a list, and true; the provider `imageId`, tags as a mapping, and sometimes "true".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api.call import Call, tag_list
from clusterctl_rehearsal.api.ec2_views import tagged
from clusterctl_rehearsal.api.making import made, named_tags, refuse_dry_run
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.instances import launched_at
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE, template_version
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.launch import NOT_A_NEW_VERSION

_API_NAMES = {
    "vpcSecurityGroupIds": "SecurityGroupIds",
    "securityGroups": "Groups",
}
"""Provider's name → API's name, where they differ in more than the first letter's case."""
_PROVIDER_NAMES = {word: key for key, word in _API_NAMES.items()}


def create_launch_template(call: Call) -> dict[str, Any]:
    """The answer to CreateLaunchTemplate."""
    refuse_dry_run(call)
    data = _from_api(call.parameters.get("LaunchTemplateData") or {})
    record = made(call, LAUNCH_TEMPLATE, {**data, "name": call.parameters["LaunchTemplateName"]})
    return {"LaunchTemplate": tagged(call, record, compute.launch_template(call, record))}


def create_version(call: Call) -> dict[str, Any]:
    """The answer to CreateLaunchTemplateVersion: the request's data laid over `SourceVersion`'s."""
    refuse_dry_run(call)
    row, source = named_template(call), call.parameters.get("SourceVersion")
    base = row.facts["versions"].get(template_version(row, source), {}) if source else {}
    kept = {key: value for key, value in row.inputs.items() if key in NOT_A_NEW_VERSION}
    data = _from_api(call.parameters.get("LaunchTemplateData") or {})
    before = {key: value for key, value in base.items() if key not in NOT_A_NEW_VERSION}
    changed = call.region.update(row.token, row.id, {**before, **data, **kept})
    return {"LaunchTemplateVersion": _version_view(changed, str(changed.outputs["latestVersion"]))}


def describe_versions(call: Call) -> dict[str, Any]:
    """The answer to DescribeLaunchTemplateVersions for one template."""
    row, asked = named_template(call), call.parameters
    known = row.facts["versions"]
    wanted = [template_version(row, version) for version in asked.get("Versions") or sorted(known, key=int)]
    for version in wanted:
        if version not in known:
            message = f"Could not find the specified version {version} for the launch template with ID {row.id}."
            raise AwsError("InvalidLaunchTemplateId.VersionNotFound", message)
    return {"LaunchTemplateVersions": [_version_view(row, version) for version in wanted]}


def named_template(call: Call) -> Record:
    """The template that the request names. Raises AwsError."""
    id, name = call.parameters.get("LaunchTemplateId"), call.parameters.get("LaunchTemplateName")
    for row in call.records(LAUNCH_TEMPLATE):
        if row.id == id or (name is not None and row.inputs["name"] == name):
            return row
    message = f"The specified launch template, with template ID {id or name}, does not exist."
    raise AwsError("InvalidLaunchTemplateId.NotFound", message)


def _version_view(row: Record, version: str) -> dict[str, Any]:
    data = {key: value for key, value in row.facts["versions"][version].items() if key not in NOT_A_NEW_VERSION}
    return {
        "LaunchTemplateId": row.id,
        "LaunchTemplateName": row.inputs["name"],
        "VersionNumber": int(version),
        "CreateTime": launched_at(row),
        "DefaultVersion": int(version) == int(row.outputs["defaultVersion"]),
        "LaunchTemplateData": _to_api(data),
    }


def _from_api(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {_PROVIDER_NAMES.get(key, key[:1].lower() + key[1:]): _from_api(item) for key, item in value.items()}
        return {**known, "tags": named_tags(value["Tags"])} if "Tags" in value else known
    return [_from_api(item) for item in value] if isinstance(value, list) else value


def _to_api(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {_API_NAMES.get(key, key[:1].upper() + key[1:]): _to_api(item) for key, item in value.items()}
        return {**known, "Tags": tag_list(value["tags"])} if "tags" in value else known
    if isinstance(value, list):
        return [_to_api(item) for item in value]
    return value == "true" if value in ("true", "false") else value
