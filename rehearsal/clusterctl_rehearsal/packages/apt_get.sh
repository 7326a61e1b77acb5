#!/bin/sh
# SIMULATED: machines of a rehearsal reach no package source. Says what a node on AWS would install, and installs nothing.
while [ $# -gt 0 ] && [ "$1" != install ]; do shift; done
[ $# -eq 0 ] || shift
for package; do
    dpkg -s "$package" >/dev/null 2>&1 || echo "SIMULATED: a node on AWS would install $package here"
done
