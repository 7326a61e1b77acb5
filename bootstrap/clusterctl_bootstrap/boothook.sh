#!/bin/sh
# clusterctl: arms this machine's end before anything else can fail, at every boot. Copied to /run/clusterctl/arm and run
# again when a deadline is pushed. Needs nothing but sh and systemd; what it would like besides, it tries within bounds.
DEADLINE=@DEADLINE@
IMDS=@IMDS@
PUSHED=/var/lib/clusterctl/deadline
RUN=/run/clusterctl
UNITS=/run/systemd/system
METADATA=http://169.254.169.254/latest/api/token

mkdir -p $RUN $UNITS /run/systemd/system.conf.d
pushed=$(cat $PUSHED 2>/dev/null)
case $pushed in '' | *[!0-9]*) ;; *) DEADLINE=$pushed ;; esac

# AWS's clock, not this machine's: the Date header of the metadata service. Anything else is no answer.
aws_date() {
    header='X-aws-ec2-metadata-token-ttl-seconds: 60'
    if command -v curl >/dev/null; then
        curl -s -m 2 -o /dev/null -D - -X PUT -H "$header" $METADATA | tr -d '\r' | sed -n 's/^[Dd]ate: //p'
    else
        timeout 3 python3 -c 'import urllib.request as u
r=u.Request("'$METADATA'",method="PUT",headers={"X-aws-ec2-metadata-token-ttl-seconds":"60"})
print(u.build_opener(u.ProxyHandler({})).open(r,timeout=2).headers["Date"])'
    fi 2>/dev/null
}
clock=own
now=$(date +%s)
date=$(aws_date) && [ -n "$date" ] && aws=$(date -u -d "$date" +%s 2>/dev/null) && now=$aws clock=aws
left=$((DEADLINE - now))
[ $left -gt 0 ] || left=0
up=$(cut -d. -f1 /proc/uptime)
due=$((up + left))

# Gone in two seconds, also with a process that ignores SIGTERM (systemd waits 90 s else).
printf '[Manager]\nDefaultTimeoutStopSec=2s\n' >/run/systemd/system.conf.d/clusterctl.conf

cat >$UNITS/clusterctl-deadline.service <<END
[Unit]
Description=clusterctl: the deadline has passed
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl poweroff --force
END
# Time since now, which no wrong clock moves; the wall clock decides alone only where AWS's was not to be had.
when="OnActiveSec=${left}s"
[ $clock = aws ] || when="OnCalendar=@$DEADLINE"
cat >$UNITS/clusterctl-deadline.timer <<END
[Unit]
Description=clusterctl: ends this machine at $(date -u -d @$DEADLINE 2>/dev/null)
DefaultDependencies=no
[Timer]
$when
AccuracySec=1s
END
# The last stage: systemd-shutdown spares a process whose name begins with @, and timers do not fire any more by then.
cat >$RUN/last <<END
#!/bin/sh
while [ \$(cut -d. -f1 /proc/uptime) -lt $((due + 90)) ]; do sleep 5; done
poweroff -ff &
sleep 10
systemd-detect-virt -cq || { echo 1 >/proc/sys/kernel/sysrq; echo o >/proc/sysrq-trigger; }
END
chmod 755 $RUN/last
cat >$UNITS/clusterctl-last.service <<END
[Unit]
Description=clusterctl: ends this machine when all else hangs
DefaultDependencies=no
[Service]
ExecStart=@/bin/sh @clusterctl-last $RUN/last
KillMode=none
SendSIGKILL=no
END

# User-data holds this machine's host key: only root reads it.
rm -f $RUN/imds
if [ $IMDS = root ] && command -v nft >/dev/null; then
    nft -f - <<END && touch $RUN/imds
table inet clusterctl_imds
delete table inet clusterctl_imds
table inet clusterctl_imds {
  chain output {
    type filter hook output priority 0
    ip daddr 169.254.169.254 meta skuid != 0 reject
    ip6 daddr fd00:ec2::254 meta skuid != 0 reject
  }
}
END
fi

# The agent begins as soon as cloud-init has written it; at a later boot, it is there already.
if [ "$0" != $RUN/arm ]; then
    rm -f /etc/clusterctl/status.json
    cp "$0" $RUN/arm && chmod 700 $RUN/arm
    cat >$UNITS/clusterctl-node.service <<END
[Unit]
Description=clusterctl: this machine becomes a node
After=cloud-init.service cloud-init-network.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/clusterctl-node boot
TimeoutStartSec=10min
END
    agent=clusterctl-node.service
fi
systemctl daemon-reload
[ $left -gt 0 ] || systemctl start --no-block clusterctl-deadline.service
systemctl stop clusterctl-deadline.timer 2>/dev/null
systemctl kill --signal=KILL clusterctl-last.service 2>/dev/null
systemctl start clusterctl-deadline.timer || exit 1
systemctl restart --no-block clusterctl-last.service $agent
