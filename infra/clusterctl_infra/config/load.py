"""cluster.yaml and the overrides of a stack → ClusterConfig, or one ConfigError with every problem."""

from __future__ import annotations

import getpass
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from clusterctl_infra.catalog.reader import Catalog, load_catalog
from clusterctl_infra.config.document import Document, Tree, read_document
from clusterctl_infra.config.fields import TAG_LETTER
from clusterctl_infra.config.hooks import with_texts
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.overrides import apply_overrides, override_of
from clusterctl_infra.config.problems import ConfigProblem, problems_of
from clusterctl_infra.config.rules import broken_rules
from clusterctl_infra.config.sound_parts import STAND_INS, Unsound, is_sound, sound_part, unsound_paths
from clusterctl_infra.errors import ConfigError

SIZE_LIMIT_BYTES = 256 * 1024
"""A hundred times what a cluster needs; a larger file is no cluster.yaml."""
NO_OVERRIDES: Mapping[str, str] = {}
MoreProblems = Callable[[ClusterConfig, Unsound], Sequence[ConfigProblem]]


def no_more_problems(config: ClusterConfig, unsound: Unsound) -> Sequence[ConfigProblem]:
    """No problems beyond the configuration's own."""
    return ()


def load_cluster(
    path: Path,
    *,
    overrides: Mapping[str, str] = NO_OVERRIDES,
    more_problems: MoreProblems = no_more_problems,
    source: str | None = None,
) -> ClusterConfig:
    """The configuration in the file, with the stack's overrides. Raises ConfigError with all problems.

    `source`: the file as a person calls it; None: by its path. When there are problems, `more_problems` is asked what
    else is wrong with the parts that are sound, so that a person hears of everything at once.
    """
    source = source or str(path)
    reading = _reading(read_text(path, source), load_catalog(), overrides)
    problems, sound = list(reading.problems), reading.sound
    if sound is not None:
        sound, script_problems = _with_scripts(sound, path.parent)
        problems += script_problems
    if reading.config is not None and sound is not None and not problems:
        return sound if sound.owner is not None else sound.model_copy(update={"owner": login_name()})
    if sound is not None:
        problems += more_problems(sound, unsound_paths(problem.path for problem in problems))
    raise config_error(source, problems, reading.document, overrides)


def load_whereabouts(path: Path, *, overrides: Mapping[str, str], source: str) -> ClusterConfig:
    """The configuration as far as ending a cluster needs it: the name and the region are right, all else may be a
    default.

    Raises ConfigError with all problems if the name or the region is wrong.
    """
    reading = _reading(read_text(path, source), load_catalog(), overrides)
    unsound = unsound_paths(problem.path for problem in reading.problems)
    if reading.sound is None or not all(is_sound((key,), unsound) for key in ("name", "region")):
        raise config_error(source, list(reading.problems), reading.document, overrides)
    return reading.sound


def later_problems(
    path: Path, problems: Sequence[ConfigProblem], *, overrides: Mapping[str, str], source: str
) -> ConfigError:
    """The error for problems found later in a configuration that could be read, with their lines in the file."""
    return config_error(source, list(problems), read_document(read_text(path, source)), overrides)


def parse_cluster(
    text: str, *, source: str, catalog: Catalog, overrides: Mapping[str, str] = NO_OVERRIDES
) -> ClusterConfig:
    """The configuration in `text`; pure. Raises ConfigError with all problems, naming `source`."""
    reading = _reading(text, catalog, overrides)
    if reading.config is None:
        raise config_error(source, list(reading.problems), reading.document, overrides)
    return reading.config


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A text as far as it could be read."""

    document: Document
    config: ClusterConfig | None
    """None when there are problems."""
    sound: ClusterConfig | None
    """The parts without problems; None when there is nothing to go by."""
    problems: tuple[ConfigProblem, ...]


def _reading(text: str, catalog: Catalog, overrides: Mapping[str, str]) -> _Reading:
    read = read_document(text)
    problems = [ConfigProblem(path=each.path, message=each.message, line=each.line) for each in read.problems]
    if not isinstance(read.tree, dict):
        if not problems:
            problems.append(ConfigProblem(path=(), message=_not_a_cluster(read.tree)))
        return _Reading(document=read, config=None, sound=None, problems=tuple(problems))
    tree, override_problems = apply_overrides(read.tree, overrides)
    config, model_problems = _validate(tree, catalog)
    problems += override_problems + model_problems
    if problems or config is None:
        sound = sound_part(tree, unsound_paths(problem.path for problem in problems))
        return _Reading(document=read, config=None, sound=sound, problems=tuple(problems))
    return _Reading(document=read, config=config, sound=config, problems=())


def login_name() -> str:
    """The login name of whoever runs this, in letters that a tag takes: `CORP-ada`; `unknown` if there is none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
    return "".join(letter if re.fullmatch(TAG_LETTER, letter) else "-" for letter in name)[:256]


def _with_scripts(config: ClusterConfig, folder: Path) -> tuple[ClusterConfig, list[ConfigProblem]]:
    """The configuration with its scripts read, and what is wrong with their files."""
    scripts, wrong = with_texts(config.scripts, folder)
    problems = [ConfigProblem(path=("scripts", index), message=message) for index, message in wrong]
    return config.model_copy(update={"scripts": scripts}), problems


def _validate(tree: dict[str, Tree], catalog: Catalog) -> tuple[ClusterConfig | None, list[ConfigProblem]]:
    """The model of the tree, None if the tree is not valid; and everything wrong with it, pydantic's errors first."""
    problems: list[ConfigProblem] = []
    config = None
    try:
        config = checked = ClusterConfig.model_validate(tree)
        unsound: frozenset[str] = frozenset()
    except ValidationError as e:
        problems = problems_of(e, ClusterConfig)
        unsound = frozenset(str(problem.path[0]) for problem in problems if problem.path)
        checked = _with_stand_ins(tree, unsound)
    problems += broken_rules(checked, catalog, unsound)
    return config, problems


def _with_stand_ins(tree: dict[str, Tree], unsound: frozenset[str]) -> ClusterConfig:
    sound = {key: value for key, value in tree.items() if key not in unsound}
    return ClusterConfig.model_validate(STAND_INS | sound)


def _not_a_cluster(tree: Tree) -> str:
    if tree is None:
        return "empty; a cluster needs at least name, region, nodes and gpus"
    return "not a mapping: write key: value lines, such as name: train"


def read_text(path: Path, source: str) -> str:
    """The text of a person's file, which messages call `source`. Raises ConfigError."""
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise ConfigError(f"{source}: a folder, not a file (did you mean {source}/cluster.yaml?)")
        if not stat.S_ISREG(kind):
            raise ConfigError(f"{source}: not a file")
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError as e:
        raise ConfigError(f"{source}: no such file") from e
    except (OSError, ValueError) as e:
        raise ConfigError(f"{source}: cannot be read ({getattr(e, 'strerror', None) or e})") from e
    if len(data) > SIZE_LIMIT_BYTES:
        raise ConfigError(f"{source}: larger than {SIZE_LIMIT_BYTES // 1024} KiB; this is no cluster.yaml")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ConfigError(f"{source}: not UTF-8 text (line {line}, byte {e.start}: 0x{data[e.start]:02x})") from e


def config_error(source: str, problems: list[ConfigProblem], read: Document, given: Mapping[str, str]) -> ConfigError:
    """One error for all problems, in the order of the file's lines; `given`: the stack's overrides."""
    placed = [_placed(problem, read, given) for problem in _without_repeats(problems)]
    placed.sort(key=lambda row: (row[0] is None, row[0] or 0))
    count = "1 problem" if len(placed) == 1 else f"{len(placed)} problems"
    return ConfigError(f"{source}: {count}, nothing was changed", problems=[line for _, line in placed])


def _without_repeats(problems: list[ConfigProblem]) -> list[ConfigProblem]:
    return list({(problem.path, problem.message): problem for problem in problems}.values())


def _placed(problem: ConfigProblem, read: Document, given: Mapping[str, str]) -> tuple[int | None, str]:
    key = override_of(problem.path, given)
    if key is not None:
        shown = replace(problem, path=()).text()
        return None, f"  config clusterctl:{key}: {shown}"
    line = problem.line or read.line_of(problem.path)
    return (line, f"  line {line:<3} {problem.text()}") if line is not None else (None, f"  {problem.text()}")
