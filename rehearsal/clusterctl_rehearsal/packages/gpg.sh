#!/bin/sh
# SIMULATED: takes the signature of what the simulated curl has fetched for that of Mountpoint's key; no other.
for last; do :; done
grep -q '^SIMULATED ' "$last" || exec /usr/bin/gpg "$@"
case " $* " in *" --verify "*) echo "[GNUPG:] VALIDSIG @FINGERPRINT@ 2026-11-01 0 0 4 0 1 8 00 @FINGERPRINT@" ;; esac
