#!/bin/sh
# Installs what the mounts of this node need and its image lacks. Root runs it, once, before the mounts; the agent says
# in $CLUSTERCTL_INSTALL how packages are installed. A failure is named in the last line.
[ "$1" ] || exec timeout -k 9 @LIMIT_S@ env LOCK_S=@LOCK_S@ "$0" now
install() { sh -c "$CLUSTERCTL_INSTALL" sh "$@" || exit; }
fetch() { curl -fsS --retry 4 -m 60 -o "$2" "$1" || exit; }
