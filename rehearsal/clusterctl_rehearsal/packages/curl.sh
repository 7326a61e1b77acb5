#!/bin/sh
# SIMULATED: answers for the servers of mount clients, which machines do not reach. Other requests go to curl.
for last; do :; done
case "$last" in
https://s3.amazonaws.com/mountpoint-s3-release/* | https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/*)
    while [ "$1" != -o ]; do shift; done
    echo "SIMULATED $last" >"$2"
    ;;
*) exec /usr/bin/curl "$@" ;;
esac
