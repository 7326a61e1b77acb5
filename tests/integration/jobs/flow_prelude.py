"""What stands above the guide's snippets: stand-ins for the model and for torch, so that ranks start in milliseconds.

`import torch` finds an object instead of a module: it travels as an instance of a class of this file, which goes to the
nodes with the program's folder. With torch itself the same snippets take minutes on two cores: 32 ranks load it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


class Cuda:
    """No GPU is there."""

    def set_device(self, index: int) -> None:
        """Nothing to set."""


class Distributed:
    """As much of torch.distributed as the guide uses."""

    def init_process_group(self, backend: str) -> None:
        """Checks the variables that a real one reads."""
        assert int(os.environ["RANK"]) < int(os.environ["WORLD_SIZE"])
        assert os.environ["MASTER_ADDR"]
        assert os.environ["MASTER_PORT"]

    def get_rank(self) -> int:
        """The rank."""
        return int(os.environ["RANK"])

    def barrier(self) -> None:
        """Nobody is waited for."""


class Model:
    """A model without weights."""

    def cuda(self) -> Model:
        """The model."""
        return self

    def state_dict(self) -> dict[str, int]:
        """One weight."""
        return {"weight": 1}


class Parallel:
    """torch.nn.parallel."""

    def DistributedDataParallel(self, model: Model, device_ids: Any = None) -> Model:  # noqa: N802 torch's name
        """The model."""
        return model


class Torch:
    """torch."""

    def __init__(self) -> None:
        self.cuda = Cuda()
        self.distributed = Distributed()

    def save(self, value: object, path: Path) -> None:
        """Writes it as text."""
        Path(path).write_text(repr(value))


def create_model() -> Model:
    """A model."""
    return Model()


def train_epoch(model: Model, dataset: object = None) -> float:
    """A loss."""
    return 0.5


def load_dataset_from_path(path: Path) -> list[str]:
    """What lies there, which has to be a mount."""
    assert path.is_dir()
    return os.listdir(path)


def load_dataset_from_s3_mount(path: str) -> list[str]:
    """What lies there."""
    return os.listdir(path)


torch: Any = Torch()
dist, DDP = torch.distributed, Parallel().DistributedDataParallel
epoch_loss, world_size = 0.5, 64
modules: Any = sys.modules
modules.update({"torch": torch, "torch.distributed": dist, "torch.nn": torch, "torch.nn.parallel": Parallel()})
