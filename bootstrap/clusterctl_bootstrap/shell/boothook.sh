#!/bin/sh
# clusterctl: what this machine does at every boot before anything can fail.
run=/run/clusterctl
state=/var/lib/clusterctl
mkdir -p $run $state /run/systemd/system
# cloud-init has commands that run this again.
[ -s $run/boot-id ] || cat /proc/sys/kernel/random/uuid >$run/boot-id
cat >$run/guard <<'CLUSTERCTL_GUARD'
@GUARD@
CLUSTERCTL_GUARD

# The agent begins as soon as cloud-init has written it, in parallel with cloud-init's later stages.
node=clusterctl-node.service
cat >/run/systemd/system/$node <<'END'
[Unit]
Description=clusterctl: this machine becomes a node
After=cloud-init.service cloud-init-network.service
[Service]
Type=exec
RemainAfterExit=yes
ExecStart=/usr/local/bin/clusterctl-node boot
Restart=on-abnormal
[Install]
WantedBy=multi-user.target
END
sh $run/guard
systemctl start --no-block $node

# For a boot at which cloud-init does not get as far as this: the agent then runs the guard that is kept here.
cmp -s $run/guard $state/guard || { cp $run/guard $state/guard.new && mv $state/guard.new $state/guard; }
if ! cmp -s /run/systemd/system/$node /etc/systemd/system/$node; then
    cp /run/systemd/system/$node /etc/systemd/system/$node
    mkdir -p /etc/systemd/system/multi-user.target.wants
    ln -sf ../$node /etc/systemd/system/multi-user.target.wants/$node
fi
exit 0
