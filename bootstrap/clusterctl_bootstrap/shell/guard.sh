#!/bin/sh
# The two guards of this machine: its end at the deadline, and the metadata service for root only.
# Run by the boothook at every boot, when a deadline is pushed, and by the wall-clock timer. Safe at any time.
# It needs only sh and systemd; anything else that it uses may be missing, and gets a few seconds at most.
CLUSTER_ID=@CLUSTER_ID@
GENERATION=@GENERATION@
DEADLINE=@DEADLINE@
IMDS=@IMDS@
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C
root=${CLUSTERCTL_ROOT:-}
run=$root/run/clusterctl
units=$root/run/systemd/system
mkdir -p "$run" "$units" "$root/run/systemd/system.conf.d"

# A pushed deadline, `cluster generation epoch`, beats the one from birth.
{ read -r id generation epoch <"$root/var/lib/clusterctl/deadline"; } 2>/dev/null
case $generation/$epoch in
/* | */ | *[!0-9/]*) ;;
*) [ "$id" = "$CLUSTER_ID" ] && [ "$generation" -gt "$GENERATION" ] && DEADLINE=$epoch ;;
esac

# Now, by AWS's clock: the Date of the metadata service's answer. From then on time is counted by the uptime.
aws_date() {
    # shellcheck disable=SC2016  # bash's variables, not ours
    timeout 3 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80 || exit
printf "%s\r\n" "PUT /latest/api/token HTTP/1.1" "Host: 169.254.169.254" "Content-Length: 0" "Connection: close" \
    "X-aws-ec2-metadata-token-ttl-seconds: 60" "" >&3
while read -r -t 2 name value <&3 && [ ${#name} -gt 1 ]; do
    # without the CR
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
# If the units are there already, this is all that a deadline in the past needs.
[ "$left" -gt 0 ] || systemctl start --no-block clusterctl-deadline.service 2>/dev/null

# The last stage reads this, so a deadline that moves needs no new process.
if [ "$counted" ]; then last="uptime $((uptime + left + 90))"; else last="clock $((DEADLINE + 90))"; fi
echo "$last" >"$run/last-stage-at.new" && mv "$run/last-stage-at.new" "$run/last-stage-at"
cat >"$run/last-stage" <<'CLUSTERCTL_LAST_STAGE'
@LAST_STAGE@
CLUSTERCTL_LAST_STAGE

unit() { { printf '[Unit]\nDescription=clusterctl: %s\nDefaultDependencies=no\n' "$2" && cat; } >"$units/clusterctl-$1"; }
# Without this a process that ignores SIGTERM would delay the end by 90 s.
printf '[Manager]\nDefaultTimeoutStopSec=2s\n' >"$root/run/systemd/system.conf.d/clusterctl.conf"
unit deadline.service 'the deadline has passed' <<'END'
[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff --force
END
# Counted, so that no wrong clock moves it, from the start of systemd: OnActiveSec begins anew at each daemon-reload.
started=$(systemctl show --value --property UserspaceTimestampMonotonic)
# Without the time asleep, which the uptime includes.
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
# The wall clock only asks this script to look again: it decides by itself only if AWS's clock was never heard.
# OnCalendar alone would not do: a moment that passes while this script runs never fires.
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
# systemd-shutdown spares root's processes whose name begins with @; timers do not fire any more by then.
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

# User-data holds this machine's host key, so only root may read it; forwarded packets come from containers.
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
# For machines with Docker's iptables but without nft, as with Amazon Linux. Not in the table filter's FORWARD: Docker
# puts its rules that let containers out first there. The service has an IPv6 address only if somebody asked for one.
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
