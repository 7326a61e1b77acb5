#!/bin/sh
# SIMULATED: accepts the signature of a file from the simulated curl as one by Mountpoint's key; other files go to gpg.
for last; do :; done
grep -q '^SIMULATED ' "$last" || exec /usr/bin/gpg "$@"
case " $* " in *" --verify "*) echo "[GNUPG:] VALIDSIG @FINGERPRINT@ 2026-11-01 0 0 4 0 1 8 00 @FINGERPRINT@" ;; esac
