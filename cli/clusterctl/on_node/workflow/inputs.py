"""What a task reads, as links in its own /tmp: folders of other tasks, datasets, and mounted buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, Sequence

from clusterctl.on_node.workflow.bucket_versions import NUMBER, NoVersion, has_versions, version_folder
from clusterctl.on_node.workflow.upload import entries, file_filter


class NoInput(Exception):
    """Why an input is not there."""


def link_inputs(inputs: Sequence[Mapping[str, Any]]) -> None:
    """Links each input, or, in a folder, the files that its `regex` chooses. Raises NoInput, OSError."""
    for each in inputs:
        link = Path(each["link"])
        link.parent.mkdir(parents=True, exist_ok=True)
        path = _source(each)
        if "url" in each and path.is_file():
            link.mkdir()
            if file_filter(each.get("regex", ""))(path.name):
                (link / path.name).symlink_to(path)
        elif not path.is_dir():
            if "version" in each and "bucket" in each:
                link.mkdir()  # a complete version of no file: a bucket has no empty folders
                continue
            raise NoInput("input %s: %s is not there" % (link.name, each.get("url", path)))
        elif each.get("regex"):
            link_files(path, link, each["regex"])
        else:
            link.symlink_to(path)


def link_files(source: Path, folder: Path, regex: str) -> None:
    """Makes `folder`, with a link to each file of `source` that the expression matches, at the same place."""
    folder.mkdir()
    wanted = file_filter(regex)
    for path, relative in entries(source):
        if wanted(relative):
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            (folder / relative).symlink_to(path)


def version_of(dataset: Path, version: str) -> Path:
    """The folder of this version on shared storage, or of the newest where none is named. Raises NoInput."""
    if version:
        return dataset / version
    if not dataset.is_dir() or not versions(dataset):
        raise NoInput("%s: no version of this dataset was kept yet" % dataset)
    return dataset / str(max(versions(dataset)))


def versions(dataset: Path) -> List[int]:
    """The numbers of a dataset's versions on shared storage."""
    return [int(path.name) for path in dataset.iterdir() if NUMBER.fullmatch(path.name)]


def _source(each: Mapping[str, Any]) -> Path:
    try:
        if "bucket" in each:
            return version_folder(Path(each["bucket"]), each["version"])
        if "dataset" in each:
            return version_of(Path(each["dataset"]), each["version"])
        path = Path(each["path"])
        # A checkpoint puts versions there: the newest complete one is meant.
        return version_folder(path, "") if "url" in each and has_versions(path) else path
    except NoVersion as e:
        raise NoInput(str(e)) from e
