"""The mount helper /sbin/mount.mount-s3 of a rehearsal's machine. SIMULATED: s3fs stands for mountpoint-s3.

It takes the options that mountpoint-s3 takes from mount(8), and refuses others (mountpoint-s3/src/fstab.rs, 2026-11).
Standard library only, run by the machine's own Python.
"""

import os
import subprocess
import sys
import time

ENDPOINT = "http://169.254.170.3"
IGNORED = ("auto", "noauto", "user", "nouser", "users", "_netdev", "nofail", "rw", "nodev", "nosuid")
SWITCHES = ("ro", "allow-other", "allow-delete", "allow-overwrite")
VALUES = ("region", "cache", "max-cache-size", "metadata-ttl", "uid", "gid", "file-mode", "dir-mode")
TIMEOUT_S = 15
MOUNT_FAILED = 32


def main(source: str, folder: str, options: str) -> int:
    """Mounts a bucket; prints a sentence and returns 32 if it cannot."""
    words = [word for word in options.split(",") if word not in IGNORED and not word.startswith("x-")]
    for word in words:
        if word not in SWITCHES and word.partition("=")[0] not in VALUES:
            print(f"error: unexpected argument '--{word}' found (simulated)")
            return MOUNT_FAILED
    bucket, _, prefix = source.partition("://")[2].partition("/")
    if not source.startswith("s3://") or (prefix and not prefix.endswith("/")):
        print(f"error: {source}: not s3://bucket/ or s3://bucket/prefix/ (simulated)")
        return MOUNT_FAILED
    chosen = [
        *("fsname=mountpoint-s3", "subtype=simulated-mount-s3", f"url={ENDPOINT}", "use_path_request_style"),
        *("umask=0000" if "dir-mode=0777" in words else "umask=0022", "connect_timeout=5", "retries=1"),
        *(["ro"] if "ro" in words else []),
        *(["allow_other"] if "allow-other" in words else []),
    ]
    keys = {"AWSACCESSKEYID": "simulated", "AWSSECRETACCESSKEY": "simulated"}
    argv = ["s3fs", f"{bucket}:/{prefix.rstrip('/')}" if prefix else bucket, folder, "-o", ",".join(chosen)]
    subprocess.run(argv, env={**os.environ, **keys}, timeout=TIMEOUT_S, check=False)
    if not _works(folder):
        print(f"error: {bucket}: the S3 server of the rehearsal does not answer (simulated)")
        subprocess.run(["umount", "--lazy", folder], timeout=TIMEOUT_S, check=False)
        return MOUNT_FAILED
    print(f"SIMULATED: {folder} is a bucket of the rehearsing computer, through s3fs")
    return 0


def _works(folder: str) -> bool:
    """Whether the mount answers: s3fs goes to the background before it has asked the server anything."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        try:
            os.listdir(folder)
        except OSError:
            return False
        if os.path.ismount(folder):
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given[0], given[1], given[given.index("-o") + 1] if "-o" in given else ""))
