"""The verbs of a rehearsal: look at it, break it on purpose, clean it away."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn  # JSON values

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import UsageError
from clusterctl_infra.private_home import secure_home
from clusterctl_infra.region_keys import read_keys

from clusterctl_rehearsal.cleaning import clean, machines_elsewhere
from clusterctl_rehearsal.full_disk import cannot_keep
from clusterctl_rehearsal.home import RehearsalHome, cache_folder, clean_command, current_home
from clusterctl_rehearsal.listing import bill_json, bill_text, exports, listed
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.owners import regions_of, root_elsewhere
from clusterctl_rehearsal.refusal import NothingThere, StandInRefusal
from clusterctl_rehearsal.region.bill import bill, billed_things
from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable, ensure_region, running_region
from clusterctl_rehearsal.region.ending import end_region
from clusterctl_rehearsal.region.fault_arguments import FaultError
from clusterctl_rehearsal.region.faults import FAULTS, known_fault
from clusterctl_rehearsal.region.store import Store

PROGRAM = "clusterctl rehearse"
USUAL_REGION = "us-west-2"
"""The region of the examples, for a shell without AWS_REGION; a stack's resources are in the region that it names."""
JSON_HELP = "JSON instead of text"
Verb = Callable[[argparse.Namespace, RehearsalHome], int]


def main(argv: Sequence[str]) -> int:
    """Runs a verb; returns the exit code. Data goes to standard output, everything else to standard error."""
    try:
        asked = _parser().parse_args(argv)
        verb: Verb = asked.do
        changed = secure_home(os.environ)
        if changed is not None:
            _report(changed)
        return verb(asked, current_home())
    except BrokenPipeError:  # `clusterctl rehearse list | head -1`: the reader has what it wanted
        _drop_unwritten_output()
        return 0
    except StdoutRefused as e:
        _drop_unwritten_output()
        return _failed(f"stdout cannot be written: {e}", "")
    except MachineError as e:
        return _failed(str(e), e.hint)
    except NothingThere as e:
        return _failed(str(e), f"{PROGRAM} list", code=3)
    except RegionUnreachable as e:
        return _failed(e.sentence, e.hint or _kill_command(current_home()))
    except StandInRefusal as e:
        return _failed(str(e), "")
    except UsageError as e:  # a home that belongs to another user
        return _failed(e.message, e.hint or "", code=e.exit_code)
    except OSError as e:  # a home that is no folder, a full disk
        return _failed(*cannot_keep(e, os.environ))
    except KeyboardInterrupt:
        return 130


class StdoutRefused(Exception):
    """Standard output cannot be written; the message is the reason."""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors name the help, and which does not hide that the help could not be printed."""

    def print_help(self, file: object = None) -> None:
        """Prints the help to stdout. argparse itself (3.11) says nothing if that cannot be written."""
        _show(self.format_help().removesuffix("\n"))

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n  next: {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Look at the rehearsed region, break it on purpose, clean it away.")
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)
    region = verbs.add_parser("region", help="the region's server: stop it")
    region.add_argument("what", choices=("stop",))
    region.set_defaults(do=_region)
    command = verbs.add_parser("list", help="what exists in the region")
    command.add_argument("--json", action="store_true", help=JSON_HELP)
    command.set_defaults(do=_list)
    command = verbs.add_parser(
        "bill", help="what all that was ever made here would have cost, by list price (simulated)"
    )
    command.add_argument("--json", action="store_true", help=JSON_HELP)
    until = "counted up to this instant, such as 2026-01-31T12:00:00 (UTC), instead of now"
    command.add_argument("--until", type=instant, metavar="INSTANT", help=until)
    command.set_defaults(do=_bill)
    command = verbs.add_parser("clean", help="remove a rehearsal with everything it left, whatever state it is in")
    command.add_argument("cluster", nargs="?", metavar="NAME", help="the cluster's name")
    command.add_argument("--all", action="store_true", help="everything of this home")
    command.set_defaults(do=_clean)
    usage = "\n".join(f"  {verb} {row.usage}".rstrip() + f"\n      {row.meaning}" for verb, row in FAULTS.items())
    command = verbs.add_parser(
        "fault",
        help="make something go wrong",
        description=f"Example: {PROGRAM} fault kill train-2\n\n{usage}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("verb")
    command.add_argument("args", nargs=argparse.REMAINDER)
    command.set_defaults(do=_fault)
    command = verbs.add_parser(
        "env", help="what another client of AWS's API needs to reach the region, as export lines"
    )
    command.set_defaults(do=_env)
    command = verbs.add_parser("image", help="build the base image of booted machines, once")
    command.set_defaults(do=_image)
    return parser


def instant(text: str) -> datetime:
    """The instant that `--until` names, in UTC unless it has a zone. Raises ArgumentTypeError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"{text!r} is no instant; write 2026-01-31T12:00:00") from e
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _region(asked: argparse.Namespace, home: RehearsalHome) -> int:
    if running_region(home) is None and not regions_of(home.machines):
        return _report("no region runs here")
    end_region(home)
    return 0


def _env(asked: argparse.Namespace, home: RehearsalHome) -> int:
    endpoint = ensure_region(home)["endpoint"]
    _show(exports(endpoint, read_keys(home.keys_file), region_name=os.environ.get("AWS_REGION") or USUAL_REGION))
    return 0


def _list(asked: argparse.Namespace, home: RehearsalHome) -> int:
    rows: dict[str, Any] = {"resources": [], "faults": {}}
    if running_region(home) is not None or (home.store.is_dir() and any(home.store.glob("*.json"))):
        rows = _ask(home, "list", {})
    rows["elsewhere"] = [
        {"cluster": cluster, "node": node, "clean": clean_command(cluster, folder)}
        for cluster, node, folder in machines_elsewhere(home)
    ]
    _show(_json(rows) if asked.json else listed(rows))
    return 0


def _bill(asked: argparse.Namespace, home: RehearsalHome) -> int:
    """Shows the bill, from the files alone: it exists even if the region does not run."""
    store = Store(home.store) if home.store.is_dir() else None
    things = () if store is None else billed_things(store.journal.rows(), store.live())
    until = time.time() if asked.until is None else asked.until.timestamp()
    rows = bill(things, load_catalog(), until=until)
    _show(_json(bill_json(rows)) if asked.json else bill_text(rows))
    return 0


def _clean(asked: argparse.Namespace, home: RehearsalHome) -> int:
    if asked.cluster is None and not asked.all:
        return _failed("clean what?", f"{PROGRAM} clean NAME, or {PROGRAM} clean --all", code=2)
    end_region(home)
    removed = clean(home, cluster=None if asked.all else asked.cluster)
    for line in removed:
        _show(line)
    other = None if asked.all else root_elsewhere(home.machines, asked.cluster)
    if not removed and other is not None:
        sentence = f"{asked.cluster} belongs to another home, {other.parent.parent}"
        return _failed(sentence, clean_command(asked.cluster, other), code=3)
    if not removed and not asked.all:
        return _failed(f"this home has nothing of {asked.cluster}", f"{PROGRAM} list", code=3)
    return 0 if removed else _report("nothing to clean")


def _fault(asked: argparse.Namespace, home: RehearsalHome) -> int:
    if {"-h", "--help"} & set(asked.args) and asked.verb in FAULTS:
        fault = FAULTS[asked.verb]
        _show(f"{f'usage: {PROGRAM} fault {asked.verb} {fault.usage}'.rstrip()}\n\n{fault.meaning}")
        return 0
    try:
        known_fault(asked.verb, asked.args, load_catalog())
    except FaultError as e:
        return _failed(str(e), f"{PROGRAM} fault --help", code=2)
    _show(_ask(home, "fault", {"verb": asked.verb, "args": asked.args})["said"])
    return 0


def _image(asked: argparse.Namespace, home: RehearsalHome) -> int:
    driver = NspawnDriver(root=home.machines, cache=cache_folder())
    problem = driver.unusable()
    if problem is not None:
        return _failed(problem, "")
    driver.prepare(lambda message: print(message, file=sys.stderr, flush=True))
    return 0


def _kill_command(home: RehearsalHome) -> str:
    """The command that ends a region's server that runs but does not answer; empty if none runs.

    The next command starts the server again, and machines live on.
    """
    found = running_region(home)
    return "" if found is None else f"kill {found['pid']}"


def _ask(home: RehearsalHome, verb: str, asked: dict[str, Any]) -> dict[str, Any]:
    with RegionClient(home) as client:
        return client.ask(verb, asked)


def _json(value: object) -> str:
    """The value as JSON, written as by every `--json` of clusterctl."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def _show(text: str) -> None:
    """Prints data, unbuffered. Raises BrokenPipeError, StdoutRefused."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as e:
        raise StdoutRefused(e.strerror) from e


def _drop_unwritten_output() -> None:
    """Discards what stdout still holds, which Python would try to write when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 0


def _failed(sentence: str, hint: str, *, code: int = 1) -> int:
    end = f"\n  next: {hint}" if hint else ""
    print(f"{PROGRAM}: {sentence}{end}", file=sys.stderr)
    return code
