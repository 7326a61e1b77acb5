# FSx's repository has the modules of each kernel in a package of its own. The kernel stays as it is: one that an upgrade
# brings would have none.
if ! [ -e /sbin/mount.lustre ] || ! modinfo lustre; then
u=https://fsx-lustre-client-repo k=/usr/share/keyrings/fsx.asc
fetch $u-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc $k
echo "deb [signed-by=$k] $u.s3.amazonaws.com/ubuntu @SUITE@ main" >/etc/apt/sources.list.d/fsx.list
install "lustre-client-modules-$(uname -r)"
dpkg-query -Wf '${db:Status-Abbrev}${Package}\n' 'linux-*aws*' | sed -n 's/^ii *//p' | xargs -r apt-mark hold
fi
