"""What an image lacks for the machines that start from it."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.plan.case import Case, warning
from clusterctl_infra.plan.model import Problem

OPEN_DRIVER = "/base-oss-", "/oss-"
"""In the parameters of images with NVIDIA's open kernel modules."""
BEFORE_TURING = ("V100",)
"""GPUs of the catalog that these do not drive: they begin with Turing (NVIDIA open-gpu-kernel-modules, README.md)."""


def driver_knows_the_gpus(case: Case) -> Iterator[Problem]:
    gpu, image = case.instance_type.gpu_api_name, case.config.image
    parameter = case.catalog.image_parameter(image, case.instance_type.architecture) or ""
    if gpu in BEFORE_TURING and any(word in parameter for word in OPEN_DRIVER):
        yield warning(
            "image",
            f"{image} has NVIDIA's open driver, which knows no {gpu}: {case.instance_type.name} would have no working "
            "GPU; name an AMI with the proprietary driver, such as AWS's Deep Learning AMI of that kind",
        )


IMAGE_RULES = (driver_knows_the_gpus,)
