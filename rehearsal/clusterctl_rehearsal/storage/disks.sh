#!/bin/sh
# SIMULATED: one instance-store disk, which the image has mounted already, as the deep learning images do. Answers in
# place of lsblk the two questions that the node agent asks; others go to the real lsblk.
case " $* " in
*" -dnpo NAME,MODEL "*) echo '/dev/nvme1n1 Amazon EC2 NVMe Instance Storage' ;;
*" -Jlpo "*)
    echo '{"blockdevices": [{"name": "/dev/nvme1n1", "fstype": "simulated", "mountpoint": "/opt/dlami/nvme"}]}'
    ;;
*) exec /usr/bin/lsblk "$@" ;;
esac
