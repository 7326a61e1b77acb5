"""`python -m clusterctl_infra.provider`: the plugin."""

from clusterctl_infra.provider.server import main

main()
