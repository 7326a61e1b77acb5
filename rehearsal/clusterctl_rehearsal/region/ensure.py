"""`python -m clusterctl_rehearsal.region.ensure`: starts the region if need be, prints where it listens.

`clusterctl` runs this when no running region answers it. It starts faster than the verbs, which load the region's code
and both kinds of machine.
"""

from __future__ import annotations

import json
import os
import sys

from clusterctl_rehearsal.full_disk import cannot_keep
from clusterctl_rehearsal.home import current_home
from clusterctl_rehearsal.region.client import RegionUnreachable, ensure_region


def main() -> int:
    """Exit code: 0 with one JSON object on standard output, 1 with a sentence on standard error."""
    try:
        sys.stdout.write(json.dumps(ensure_region(current_home())) + "\n")
    except RegionUnreachable as e:
        sys.stderr.write("\n  next: ".join(filter(None, (e.sentence, e.hint))) + "\n")
        return 1
    except OSError as e:  # a home that is no folder, a full disk
        sys.stderr.write("\n  next: ".join(cannot_keep(e, os.environ)) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
