"""`python -m clusterctl_rehearsal VERB`: what `clusterctl rehearse` passes its arguments to."""

from __future__ import annotations

import sys

from clusterctl_rehearsal.verbs import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
