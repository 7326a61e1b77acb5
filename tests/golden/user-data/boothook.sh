#!/bin/sh
run=/run/clusterctl
state=/var/lib/clusterctl
mkdir -p $run $state /run/systemd/system
[ -s $run/boot-id ] || cat /proc/sys/kernel/random/uuid >$run/boot-id
cat >$run/guard <<'CLUSTERCTL_GUARD'
#!/bin/sh
CLUSTER_ID=3f9c0a51b7de
GENERATION=0
DEADLINE=1796149800
IMDS=root
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C
root=${CLUSTERCTL_ROOT:-}
run=$root/run/clusterctl
units=$root/run/systemd/system
mkdir -p "$run" "$units" "$root/run/systemd/system.conf.d"

{ read -r id generation epoch <"$root/var/lib/clusterctl/deadline"; } 2>/dev/null
case $generation/$epoch in
/* | */ | *[!0-9/]*) ;;
*) [ "$id" = "$CLUSTER_ID" ] && [ "$generation" -gt "$GENERATION" ] && DEADLINE=$epoch ;;
esac

aws_date() {
# shellcheck disable=SC2016  # bash's variables, not ours
timeout 3 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80 || exit
printf "%s\r\n" "PUT /latest/api/token HTTP/1.1" "Host: 169.254.169.254" "Content-Length: 0" "Connection: close" \
"X-aws-ec2-metadata-token-ttl-seconds: 60" "" >&3
while read -r -t 2 name value <&3 && [ ${#name} -gt 1 ]; do
case $name in [Dd]ate:) echo "${value%?}" ;; esac
done' 2>/dev/null
}
read -r uptime _ <"$root/proc/uptime"
uptime=${uptime%%.*}
counted=
if date=$(aws_date) && [ -n "$date" ] && aws=$(date -u -d "$date" +%s 2>/dev/null); then
echo "$aws $uptime" >"$run/aws-clock"
fi
{ read -r aws at <"$run/aws-clock" && counted=yes; } 2>/dev/null
if [ "$counted" ]; then now=$((aws + uptime - at)); else now=$(date +%s); fi
left=$((DEADLINE - now))
[ "$left" -gt 0 ] || systemctl start --no-block clusterctl-deadline.service 2>/dev/null

if [ "$counted" ]; then last="uptime $((uptime + left + 90))"; else last="clock $((DEADLINE + 90))"; fi
echo "$last" >"$run/last-stage-at.new" && mv "$run/last-stage-at.new" "$run/last-stage-at"
cat >"$run/last-stage" <<'CLUSTERCTL_LAST_STAGE'
uptime_s() { read -r up _ </proc/uptime && echo "${up%%.*}"; }
pause() { end=$(($(uptime_s) + $1)) && while [ "$(uptime_s)" -lt "$end" ]; do sleep 1; done; }
systemd-detect-virt --container --quiet && container=yes
while :; do
read -r clock at </run/clusterctl/last-stage-at
[ "$at" ] || exit
if [ "$clock" = uptime ]; then now=$(uptime_s); else now=$(date +%s); fi
left=$((at - ${now:-0}))
if [ "$left" -le 0 ]; then break; elif [ "$left" -gt 30 ]; then sleep 30; else sleep 1; fi
done
poweroff -ff &
pause 10
[ "$container" ] && exit
echo 1 >/proc/sys/kernel/sysrq
echo o >/proc/sysrq-trigger
pause 10
echo b >/proc/sysrq-trigger
CLUSTERCTL_LAST_STAGE

unit() { { printf '[Unit]\nDescription=clusterctl: %s\nDefaultDependencies=no\n' "$2" && cat; } >"$units/clusterctl-$1"; }
printf '[Manager]\nDefaultTimeoutStopSec=2s\n' >"$root/run/systemd/system.conf.d/clusterctl.conf"
unit deadline.service 'the deadline has passed' <<'END'
[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff --force
END
started=$(systemctl show --value --property UserspaceTimestampMonotonic)
counter=$(python3 -ISc 'import time; print(int(time.monotonic()))' || echo "$uptime")
case $started in
'' | *[!0-9]*) when=OnActiveSec=$left ;;
*) when=OnStartupSec=$((counter + left - started / 1000000)) ;;
esac
unit deadline.timer 'the deadline, counted' <<END
[Timer]
$when
AccuracySec=100ms
END
later=${counted:+5}
unit deadline-clock.timer 'the deadline, by the wall clock' <<END
[Timer]
OnCalendar=@$((DEADLINE + ${later:-0}))
OnActiveSec=$((left + ${later:-0}))
AccuracySec=100ms
END
unit deadline-clock.service 'looks whether the deadline has passed' <<'END'
[Service]
Type=oneshot
ExecStart=/bin/sh /run/clusterctl/guard
END
unit last-stage.service 'ends this machine when all else hangs' <<'END'
[Service]
ExecStart=@/bin/sh @clusterctl-last-stage /run/clusterctl/last-stage
Restart=always
OOMScoreAdjust=-1000
END

systemctl daemon-reload
systemctl start --no-block clusterctl-last-stage.service
if [ "$left" -le 0 ]; then
systemctl start --no-block clusterctl-deadline.service || systemctl poweroff --force --force
else
systemctl restart clusterctl-deadline-clock.timer
[ "$counted" ] && systemctl restart clusterctl-deadline.timer
fi

rule() {
refusal=$(nft -f - 2>&1 <<'END'
table inet clusterctl_imds
delete table inet clusterctl_imds
table inet clusterctl_imds {
chain output {
type filter hook output priority 0
ip daddr 169.254.169.254 meta skuid != 0 reject
ip6 daddr fd00:ec2::254 meta skuid != 0 reject
}
chain forward {
type filter hook forward priority 0
ip daddr 169.254.169.254 reject
ip6 daddr fd00:ec2::254 reject
}
}
END
) && echo root || echo "failed: nft: $refusal"
}
older_rule() { first filter OUTPUT -m owner ! --uid-owner 0 -j REJECT && first mangle FORWARD -j DROP; }
first() {
table=$1 chain=$2 && shift 2
set -- "$chain" -d 169.254.169.254 "$@"
iptables -w 5 -t "$table" -C "$@" 2>/dev/null || iptables -w 5 -t "$table" -I "$@"
}
if [ "$IMDS" = users ]; then
echo users
elif nft -v >/dev/null 2>&1; then
rule
elif iptables -V >/dev/null 2>&1; then
refusal=$(older_rule 2>&1) && echo root || echo "failed: iptables: $refusal"
else
echo "failed: nft is missing; the image needs the package nftables"
fi >"$run/imds"
CLUSTERCTL_GUARD

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

cmp -s $run/guard $state/guard || { cp $run/guard $state/guard.new && mv $state/guard.new $state/guard; }
if ! cmp -s /run/systemd/system/$node /etc/systemd/system/$node; then
cp /run/systemd/system/$node /etc/systemd/system/$node
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -sf ../$node /etc/systemd/system/multi-user.target.wants/$node
fi
exit 0
