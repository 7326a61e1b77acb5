"""The interpreter of a job on one node: one that is there, or an environment made for its requirements."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from clusterctl.on_node.job.index_logins import without_logins
from clusterctl.on_node.job.job_environment import PYTHON_FILE, job_folder
from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.lease import holders

Run = Callable[..., Tuple[int, str]]
"""Runs argv as the job's user with a log: its exit code, and the end of what it printed.

With `is_contained` it runs in a container of the job's image, where the job has one; that can write the folder
`making`, which is made for it."""
IMAGE_ENVIRONMENTS = "var/lib/clusterctl/image-environments"
"""Root's folder, with one for each environment that an image's programs make; they see only that one."""
CONDA = "conda:"
CONDA_PLACES = ("~/miniconda3", "~/anaconda3", "~/miniforge3", "/opt/conda", "/opt/miniconda3", "/opt/anaconda3")
LOOK = "import json, platform, sys; print(json.dumps([sys.executable, platform.python_version(), platform.platform()]))"
DONE_FILE = "made-by-clusterctl"
MOST_ENVIRONMENTS = 10
"""Kept on a node's own disk; those that were not used for the longest time go."""
MOST_BYTES = 4 * 1024 * 1024
"""The most that a file of requirements, or its lock, may have."""
CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?$")
RESOLVE = ("install", "--dry-run", "--quiet", "--report", "-")
ALL_ANEW = "--ignore-installed"
"""Not for pip in an image, whose packages, such as its torch, stay as they are."""


def find_python(wanted: str | None, home: str) -> str:
    """The path, or the name, of the interpreter that was asked for on the node. Raises ValueError."""
    if wanted is None:
        return "python3"
    if not wanted.startswith(CONDA):
        python = os.path.join(home, wanted[2:]) if wanted.startswith("~/") else wanted
        if python.startswith("/") and not os.access(python, os.X_OK):
            raise ValueError("--python %s: no such program there" % python)
        return python
    name = wanted[len(CONDA) :]
    places = [name] if name.startswith("/") else [place.replace("~", home) + "/envs/" + name for place in CONDA_PLACES]
    for place in places:
        if os.access(place + "/bin/python", os.X_OK):
            return place + "/bin/python"
    raise ValueError("--python %s: no such environment; looked in %s" % (wanted, ", ".join(places)))


def facts_of(python: str, run: Run, *, making: Optional[Path] = None) -> List[str]:
    """The interpreter's path, version and platform. Raises ValueError where it cannot be run."""
    code, output = run([python, "-I", "-c", LOOK], keeps_output=True, is_contained=True, making=making)
    try:
        path, version, platform = json.loads(output.strip().splitlines()[-1])
        return [str(path), str(version), str(platform)]
    except (ValueError, LookupError, TypeError) as e:
        raise ValueError("%s is no Python that can be run (exit %d): %s" % (python, code, last_of(output))) from e


def refuse_other_python(version: str, wanted: str) -> None:
    """Raises ValueError for a version that a lock was not made for; `wanted` as in uv.lock: `>=3.11, <3.13`."""
    if not all(_fits(version, clause) for clause in wanted.split(",")):
        raise ValueError("Python %s, and uv.lock is for %s: name another interpreter by --python" % (version, wanted))


def _fits(version: str, clause: str) -> bool:
    """PEP 440's comparisons, of releases alone; a clause of another form fits."""
    found = CLAUSE.match(clause.strip())
    if found is None:
        return True
    operator, text, is_prefix = found.groups()
    have = [int(each) for each in re.findall(r"\d+", version)[:3]]
    want = [int(each) for each in text.split(".")]
    is_beginning = have[: len(want)] == want
    if operator in ("==", "!="):
        is_same = is_beginning if is_prefix else have == want + [0] * (3 - len(want))
        return is_same == (operator == "==")
    padded = want + [0] * (3 - len(want))
    if operator == "~=":
        return have >= padded and have[: len(want) - 1] == want[:-1]
    return {">=": have >= padded, "<=": have <= padded, ">": have > padded, "<": have < padded}[operator]


def environments(layout: Layout, spec: Mapping[str, Any]) -> Path:
    """Where environments are: on shared storage where the job has some, else the node's own disk."""
    if spec.get("shared"):
        return Path(spec["shared"]).parent.parent / "environments"
    return layout.root / "var/lib/clusterctl/environments"


def made_by_image(layout: Layout, spec: Mapping[str, Any], name: str) -> Path | None:
    """Where the image makes the environment `name`; None where the login user makes it, or it is on shared storage."""
    return layout.root / IMAGE_ENVIRONMENTS / name if _image(spec) and not spec.get("shared") else None


def lock(layout: Layout, spec: Dict[str, Any], python: List[str], run: Run) -> str:
    """The requirements with the version and hash of each, resolved here; the same file gives the same lock again.

    Raises ValueError with pip's own last words.
    """
    source = job_folder(layout, spec) / spec["requirements"]
    text = text_of(source, run)
    place = environments(layout, spec) / ("lock-%s.txt" % digest(text, *python[1:], *_image(spec)))
    if place.is_file():
        return text_of(place, run)
    name = "%s.resolver-%d" % (place.stem, os.getpid())
    own = made_by_image(layout, spec, name)
    scratch = own or place.with_name(name)
    bare, netrc = beside(source, "resolved"), beside(source, "netrc")
    try:
        pip = new_environment(scratch, spec, python[0], run, making=own)
        variables = write_for_pip(text, bare, netrc, run, is_contained=bool(_image(spec)))
        resolve = [*pip, *RESOLVE, *([] if _image(spec) else [ALL_ANEW]), "-r", str(bare)]
        code, report = run(resolve, keeps_output=True, variables=variables, is_contained=True, making=own)
        if code:
            raise ValueError("%s: %s" % (spec["requirements"], last_of(report)))
        found = locked(text, report_of(report))
        write_private(place, found, run)
        return found
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
        run(["rm", "-rf", *([] if own else [str(scratch)]), str(bare), str(netrc)])


def write_for_pip(text: str, bare: Path, netrc: Path, run: Run, *, is_contained: bool = False) -> Dict[str, str]:
    """Writes requirements without the indexes' logins, and a netrc file with those; gives pip's variables for that.

    `is_contained`: pip runs in a container, which does not have the person's home on the node.
    """
    without, logins = without_logins(text)
    write_private(bare, without, run)
    if not logins and not is_contained:
        return {}
    write_private(netrc, logins, run)
    # A netrc file of the person's own counts, too, and stands before ours: Python takes a host's last login.
    both = 'umask 077; { cat ~/.netrc; echo; cat "$1"; } > "$1.new" && mv -T "$1.new" "$1"'
    run(["sh", "-c", "[ ! -r ~/.netrc ] || { %s; }" % both, "sh", str(netrc)])
    return {"NETRC": str(netrc)}


def write_private(path: Path, text: str, run: Run) -> None:
    """Writes a file, whole or not at all, for the job's user alone; by stdin, since everybody sees arguments."""
    script = 'umask 077; cat > "$1.new" && mv -T "$1.new" "$1"'
    code, output = run(["sh", "-c", script, "sh", str(path)], stdin=text)
    if code:
        raise ValueError("%s: %s" % (path.name, last_of(output)))


def beside(path: Path, kind: str) -> Path:
    """A hidden file in the same folder: what a file of requirements names is found from there."""
    return path.with_name(".%s.%s" % (path.name, kind))


def text_of(path: Path, run: Run) -> str:
    """What is in a file that lies in a folder of the job's user. Raises ValueError.

    Read as that user: a job may have put a link there to what only root may read, and the text goes back to the user.
    """
    code, output = run(["head", "-c", str(MOST_BYTES), "--", str(path)], keeps_output=True)
    if code:
        raise ValueError("%s: %s" % (path.name, last_of(output)))
    if len(output) >= MOST_BYTES:
        raise ValueError("%s: longer than %d bytes" % (path.name, MOST_BYTES))
    return output


def report_of(output: str) -> Dict[str, Any]:
    """pip's report, behind whatever else it printed. Raises ValueError without one: pip runs as the job's user."""
    try:
        found = json.loads(output[output.index("{") :])
        if isinstance(found["install"], list):
            return dict(found)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass  # reported below
    raise ValueError("pip gave no report: %s" % last_of(output))


def locked(text: str, report: Dict[str, Any]) -> str:
    """Lines for pip: the file's own options, and what pip would install, by version and hash. Raises ValueError."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line.startswith("--") and not line.startswith(("--requirement", "--constraint"))]
    rows = []
    for each in report["install"]:
        try:
            name, version = each["metadata"]["name"], each["metadata"]["version"]
            source = each["download_info"]
            hashes = source.get("archive_info", {}).get("hashes", {})
            what = "%s @ %s" % (name, source["url"]) if each.get("is_direct") else "%s==%s" % (name, version)
            rows.append((what, hashes.get("sha256")))
        except (LookupError, TypeError, AttributeError) as e:
            raise ValueError("pip's report has an odd row: %s" % e) from e
    has_all = all(sha256 for _, sha256 in rows)  # pip wants a hash for each, or none at all
    pinned = [what + (" --hash=sha256:%s" % sha256 if has_all else "") for what, sha256 in sorted(rows)]
    return "\n".join([*kept, *pinned]) + "\n"


def environment_of(layout: Layout, spec: Dict[str, Any], lock_text: str, python: List[str], run: Run) -> Path:
    """The environment that has what the lock says, made where it is not there yet. Raises ValueError."""
    name = digest(lock_text, *python[1:], *_image(spec))
    own = made_by_image(layout, spec, name)
    place = own or environments(layout, spec) / name
    mine = job_folder(layout, spec) / spec["requirements"]
    file, netrc = beside(mine, "lock"), beside(mine, "netrc")
    # One process at a time makes it, also where nodes share it; what broke off has no DONE_FILE.
    begin, clear = ('9>"$1.lock"', 'rm -rf "$1"; ') if own is None else ('9<"$1"', "")
    script = (
        'exec %s && flock 9 || exit 3; [ -e "$1/$3" ] && { touch "$1/$3"; exit 0; }; %s%s --clear "$1" && '
        '"$1/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps -r "$2" && touch "$1/$3"'
    ) % (begin, clear, shlex.join(venv_argv(spec, python[0], run)))
    try:
        variables = write_for_pip(lock_text, file, netrc, run, is_contained=bool(_image(spec)))
        make = ["sh", "-c", script, "sh", str(place), str(file), DONE_FILE]
        code, output = run(make, variables=variables, is_contained=True, making=own)
    finally:
        run(["rm", "-f", str(netrc)])
    if code:
        raise ValueError("the environment of %s was not made: %s" % (spec["requirements"], last_of(output)))
    if not spec.get("shared"):
        remove_old(layout, place)
    return place


def new_environment(
    place: Path, spec: Dict[str, Any], python: str, run: Run, *, making: Optional[Path] = None
) -> List[str]:
    """Makes an empty environment; gives the argv of its pip. Raises ValueError."""
    code, output = run([*venv_argv(spec, python, run), str(place)], is_contained=True, making=making)
    if code:
        missing = "the image has neither pip nor" if _image(spec) else "python3-venv is missing"
        where = "ensurepip for it" if _image(spec) else "(packages: in cluster.yaml)"
        why = "%s %s" % (missing, where) if "ensurepip" in output else last_of(output)
        raise ValueError("%s -m venv: %s" % (python, why))
    return [str(place / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]


def venv_argv(spec: Dict[str, Any], python: str, run: Run) -> List[str]:
    """The argv that makes an environment; one in an image sees the image's packages too, and its pip, if any."""
    if not _image(spec):
        return [python, "-m", "venv"]
    code, _ = run([python, "-I", "-m", "pip", "--version"], is_contained=True)
    return [python, "-m", "venv", "--system-site-packages", *([] if code else ["--without-pip"])]


def _image(spec: Mapping[str, Any]) -> List[str]:
    """The id of the job's image as the only element; an empty list where it has none."""
    return [str(spec["image_id"])] if spec.get("image_id") else []


def write_python(layout: Layout, job: str, python: str, **words: Any) -> None:
    """Has `python3` and `python` mean this interpreter for the job, its programs first in PATH."""
    folder = layout.folder(job) / "bin"
    folder.mkdir(exist_ok=True)
    for name in ("python", "python3"):
        (folder / name).write_text('#!/bin/sh\nexec %s "$@"\n' % shlex.quote(python))
        (folder / name).chmod(0o755)
    write_json(layout.folder(job) / PYTHON_FILE, {"interpreter": python, **words})


def digest(*parts: str) -> str:
    """A name made of a hash over all parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def last_of(output: str) -> str:
    """The end of what a program printed, in one line."""
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return " / ".join((errors or lines)[-3:])[-500:] or "it said nothing"


def remove_old(layout: Layout, but: Path) -> None:
    """Removes environments beyond MOST_ENVIRONMENTS, the oldest first, but none of jobs that are here now."""
    used = {str(but)}
    for holder in holders(layout):
        try:
            words = json.loads((layout.folder(holder["job"]) / PYTHON_FILE).read_text())
            used.add(str(words["environment"]))
        except (OSError, ValueError, LookupError):
            continue  # it has none of its own
    found = sorted(but.parent.glob("*/" + DONE_FILE), key=lambda path: path.stat().st_mtime)
    for path in found[: max(0, len(found) - MOST_ENVIRONMENTS)]:
        if str(path.parent) not in used:
            shutil.rmtree(path.parent, ignore_errors=True)
