"""What becomes of a task's outputs once its command has ended, however it did."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import Any, List, Mapping

from clusterctl.on_node.workflow.bucket_versions import NUMBER, keep_version
from clusterctl.on_node.workflow.upload import FileFilter, NotUploaded, entries, file_filter, files_in_words, upload

MOST_TRIES = 1000
TAKEN = ".taken-"
"""Begins the name of the folder by which a task takes a version's number."""
MOST_SHOWN = 10
WHOLE = "{{output}}"


class NotKept(Exception):
    """Why an output was not kept."""


def keep_output(folder: Path, output: Mapping[str, Any], words: Mapping[str, Any]) -> bool:
    """Keeps one output of what is in `folder`, and prints what became of it; True if that failed.

    `words`: how the task ended, for those who look at a version. Nothing goes to a URL if the task starts again,
    because its next start could not replace it.
    """
    try:
        wanted = file_filter(output.get("regex", ""))
        if "url" not in output:
            say("%s is kept as %s" % (output["path"] or WHOLE, _keep_dataset(folder, output, words, wanted)))
        elif words["begins_anew"]:
            say("%s: left to the task's next start" % output["url"])
        else:
            count, left_out = upload(folder, Path(output["folder"]), wanted)
            say("%s is in %s: %s%s" % (WHOLE, output["url"], files_in_words(count), _without(left_out)))
    except (OSError, NotKept, NotUploaded) as e:
        where = "%s: " % output["url"] if "url" in output else ""
        say("an output was not kept: %s%s" % (where, e))
        return True
    return False


def say(text: str) -> None:
    """A line of ours in the task's output."""
    print("clusterctl: %s" % text, flush=True)


def keep(source: Path, dataset: Path, wanted: FileFilter) -> Path:
    """The dataset's new version on shared storage: a copy of the file, or of the folder's wanted files.

    A version that has files appears whole. Raises OSError, NotKept.
    """
    if not source.exists():
        raise NotKept("%s is not there" % source)
    dataset.mkdir(parents=True, exist_ok=True)
    beside = dataset / (".new-%s-%d" % (os.environ.get("CLUSTERCTL_JOB", ""), os.getpid()))
    try:
        if source.is_dir():
            unwanted = {str(path) for path, relative in entries(source) if not wanted(relative)}
            shutil.copytree(
                source,
                beside,
                symlinks=True,
                ignore=lambda folder, names: [name for name in names if os.path.join(folder, name) in unwanted],
            )
            if unwanted:
                _remove_empty_folders(beside)
        else:
            beside.mkdir()
            if wanted(source.name):
                shutil.copy2(source, beside / source.name)
        return numbered(beside, dataset)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def numbered(beside: Path, dataset: Path) -> Path:
    """Renames the folder to the next number that nobody else takes meanwhile; gives its new path.

    Raises OSError, NotKept.

    A number is taken by making a folder that is no version: mkdir(2) gives it to only one of two tasks, and a task that
    is killed leaves no empty version, but only a number that no version has.
    """
    names = [path.name.removeprefix(TAKEN) for path in dataset.iterdir()]
    first = 1 + max((int(name) for name in names if NUMBER.fullmatch(name)), default=0)
    for number in range(first, first + MOST_TRIES):
        version, taken = dataset / str(number), dataset / (TAKEN + str(number))
        try:
            taken.mkdir()
        except FileExistsError:
            continue
        try:
            if not version.exists():  # else its task was done between our two looks; rename(2) may replace a folder
                os.rename(beside, version)
                return version
        except OSError as e:
            # On shared storage another node's version can be there before we see it.
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        finally:
            with contextlib.suppress(OSError):  # left behind it only costs a number; the output is kept, or not, by now
                taken.rmdir()
    raise NotKept("%s: no number for a new version was free" % dataset)


def _keep_dataset(folder: Path, output: Mapping[str, Any], words: Mapping[str, Any], wanted: FileFilter) -> str:
    source = folder / output["path"]
    if "bucket" not in output:
        return str(keep(source, Path(output["dataset"]), wanted))
    count, left_out = keep_version(source, Path(output["bucket"]), output["version"], words, wanted)
    return "%s of %s: %s%s" % (output["version"], output["bucket"], files_in_words(count), _without(left_out))


def _remove_empty_folders(top: Path) -> None:
    """Removes folders without a wanted file; `top` itself stays."""
    for each in os.walk(str(top), topdown=False):
        if each[0] != str(top) and not os.listdir(each[0]):
            os.rmdir(each[0])


def _without(left_out: List[str]) -> str:
    return "; left out, as they are not files: %s" % ", ".join(left_out[:MOST_SHOWN]) if left_out else ""
