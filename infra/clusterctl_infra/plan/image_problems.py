"""What an image lacks for the machines that start from it."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.config.model import DEFAULT_IMAGE
from clusterctl_infra.plan.case import Case, warning
from clusterctl_infra.plan.model import Problem

OPEN_DRIVER = "/base-oss-", "/oss-"
"""Words in the SSM parameters of images with NVIDIA's open kernel modules."""
BEFORE_TURING = ("V100",)
"""The catalog's GPUs that those modules, which begin with Turing, do not drive (NVIDIA open-gpu-kernel-modules,
README.md)."""


def driver_knows_the_gpus(case: Case) -> Iterator[Problem]:
    gpu, image = case.instance_type.gpu_api_name, case.config.image
    parameter = case.catalog.image_parameter(image, case.instance_type.architecture) or ""
    if gpu in BEFORE_TURING and any(word in parameter for word in OPEN_DRIVER):
        yield warning(
            "image",
            f"{image} has NVIDIA's open driver, which does not support {gpu}: {case.instance_type.name} would have no "
            "working GPU; name an AMI with the proprietary driver, such as AWS's Deep Learning AMI of that kind",
        )


def drivers_are_there(case: Case) -> Iterator[Problem]:
    """Only warnings: a script may bring NVIDIA's driver, and a kernel may have an EFA driver of its own."""
    image, machine = case.catalog.images.get(case.config.image), case.instance_type
    lacks = () if image is None else image.lacks
    if "NVIDIA driver" in lacks and machine.gpu_count:
        yield warning(
            "image",
            f"{case.config.image} has no NVIDIA driver: the GPUs of {machine.name} bill and do nothing until a script "
            f"of yours has installed one; {DEFAULT_IMAGE} has it",
        )
    if "EFA driver" in lacks and machine.has_efa and case.config.fabric != "none":
        outcome = "nodes fail while they boot" if case.config.fabric == "required" else "nodes talk TCP"
        yield warning(
            "fabric",
            f"{case.config.image} has no EFA driver: unless its kernel brings one, {outcome}; {DEFAULT_IMAGE} has it",
        )


def type_is_listed(case: Case) -> Iterator[Problem]:
    """AWS lists for each image with drivers the families that it is made for. A newer build may be made for more."""
    image, machine = case.catalog.images.get(case.config.image), case.instance_type
    listed = () if image is None else image.families.get(machine.architecture, ())
    if not listed or not machine.gpu_count or machine.family in listed or machine.gpu_api_name in BEFORE_TURING:
        return
    fitting = [
        name
        for name, row in case.catalog.images.items()
        if machine.family in row.families.get(machine.architecture, ()) and row.unpatched_since is None
    ]
    helps = f"; it does for {', '.join(fitting)}" if fitting else ""
    yield warning(
        "image",
        f"AWS does not list {machine.family} for {case.config.image} (known of {case.catalog.images_dated}): its "
        f"drivers may not know the GPUs or the EFA of {machine.name}{helps}",
    )


def image_is_patched(case: Case) -> Iterator[Problem]:
    image = case.catalog.images.get(case.config.image)
    if image is not None and image.unpatched_since is not None:
        helps = "" if image.replaced_by is None else f"; write image: {image.replaced_by}"
        yield warning("image", f"{image.name}: AWS has fixed nothing in it since {image.unpatched_since}{helps}")


IMAGE_RULES = (driver_knows_the_gpus, drivers_are_there, type_is_listed, image_is_patched)
