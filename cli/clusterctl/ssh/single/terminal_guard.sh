#!/bin/sh
# Hangs up the terminal session whose first command line has $mark in it, when this shell is ended before that session.
# It looks for that session in /proc: a command at a terminal cannot report its process id. $mark is a pattern that
# does not match its own text.
leader=
hang_up() {
    [ -z "$leader" ] || kill -s HUP -- "-$leader"
    exit 0
}
pause() {
    sleep "$1" &
    wait $!
}
look() {
    # shellcheck disable=SC2013,SC2154 # a number in each; $mark is set before all this
    for file in $(grep -la -e "$mark" /proc/[0-9]*/cmdline); do
        pid=${file#/proc/}
        pid=${pid%/cmdline}
        read -r line <"/proc/$pid/stat" || continue
        # shellcheck disable=SC2086 # its words: state, parent, group, session
        set -- ${line##*) }
        [ "$4" = "$pid" ] || continue
        # If the nodes run on this same computer, the ssh of the person has the same text in its command line.
        read -r parent <"/proc/$2/comm" || continue
        case $parent in sshd*) leader=$pid ;; esac
    done
}
trap hang_up TERM
exec 2>/dev/null
look
while [ -z "$leader" ]; do
    pause 1
    look
done
while kill -s 0 "$leader"; do
    pause 2
done
