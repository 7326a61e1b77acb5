"""`python -m clusterctl`."""

from clusterctl.main import main

main()
