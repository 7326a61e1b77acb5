#!/bin/sh
# Ends the session $clusterctl_group (its group, where there is no pkill) when its input ends, or is silent for
# $clusterctl_silence_s seconds.
# When the group's leader has ended by itself, nothing is done: what it left running was meant to stay.
{
    finish() {
        kill -s 0 "$clusterctl_group" || exit 0
        # By session: `timeout` and job control make groups of their own in it.
        pkill -TERM -s "$clusterctl_group" || kill -s TERM -- "-$clusterctl_group"
        sleep "$clusterctl_grace_s"
        pkill -KILL -s "$clusterctl_group" || kill -s KILL -- "-$clusterctl_group"
        exit 0
    }
    # dash has no read -t: there a timer runs beside the loop, and each beat starts it anew.
    wind() {
        [ -z "$timer" ] || kill -s USR1 "$timer"
        (
            trap 'kill -s KILL "$nap"; exit 0' USR1
            sleep "$clusterctl_silence_s" &
            nap=$!
            wait "$nap"
            finish
        ) &
        timer=$!
    }
    trap '' HUP INT TERM
    if [ -n "$BASH_VERSION$ZSH_VERSION" ]; then
        # shellcheck disable=SC3045 # no POSIX shell comes here
        while read -r -t "$clusterctl_silence_s" _; do :; done
    else
        timer=
        wind
        while read -r _; do wind; done
        kill -s USR1 "$timer"
    fi
    finish
} 2>/dev/null
