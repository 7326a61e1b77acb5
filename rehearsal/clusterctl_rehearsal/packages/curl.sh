#!/bin/sh
# SIMULATED: stands for the servers that mounts' clients come from, which machines do not reach. The rest goes to curl.
for last; do :; done
case "$last" in
https://s3.amazonaws.com/mountpoint-s3-release/* | https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/*)
    while [ "$1" != -o ]; do shift; done
    echo "SIMULATED $last" >"$2"
    ;;
*) exec /usr/bin/curl "$@" ;;
esac
