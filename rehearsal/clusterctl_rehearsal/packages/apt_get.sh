#!/bin/sh
# SIMULATED: machines of a rehearsal reach no package source. Prints what a node on AWS would install; installs only
# the stand-ins for mount clients. Packages that rehearsal.yaml lists as missing are not found.
case " $* " in *" install "*) ;; *) exit 0 ;; esac
while [ "$1" != install ]; do shift; done
shift
refused() {
    echo "E: Unable to locate package $1" >&2
    exit 100
}
client() {
    cp "/usr/local/lib/clusterctl-rehearsal/mount.$1" /sbin/ && echo "SIMULATED: a stand-in for $2 is installed"
}
for package; do
    grep -qsxF "$package" /usr/local/lib/clusterctl-rehearsal/missing-packages && refused "$package"
    case "$package" in
    "lustre-client-modules-$(uname -r)")
        [ -e /etc/apt/sources.list.d/fsx.list ] || refused "$package"
        client lustre "$package"
        ;;
    lustre-client-modules-*) refused "$package" ;;
    nfs-common) client nfs "$package" && client nfs4 "$package" ;;
    ./mount-s3-*.deb) client mount-s3 "$package" ;;
    *) dpkg -s "$package" >/dev/null 2>&1 || echo "SIMULATED: a node on AWS would install $package here" ;;
    esac
done
