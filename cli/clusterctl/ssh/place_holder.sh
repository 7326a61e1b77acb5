#!/bin/sh
# Ends the session $clusterctl_group, as watchdog.sh does, after $clusterctl_silence_s seconds, unless the watcher comes
# and ends this script first.
# When the group's leader has ended by itself, nothing is done: what it left running was meant to stay.
{
    trap '' HUP INT TERM
    while [ "$clusterctl_silence_s" -gt 0 ]; do
        sleep 1
        kill -s 0 "$clusterctl_group" || exit 0
        clusterctl_silence_s=$((clusterctl_silence_s - 1))
    done
    pkill -TERM -s "$clusterctl_group" || kill -s TERM -- "-$clusterctl_group"
    sleep "$clusterctl_grace_s"
    pkill -KILL -s "$clusterctl_group" || kill -s KILL -- "-$clusterctl_group"
} 2>/dev/null
