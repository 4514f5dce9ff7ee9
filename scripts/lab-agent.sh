#!/usr/bin/env bash
# Starts a command in a host of the lab. Called as ssh is, by Open MPI and by hydra: [options] HOST COMMAND...; the
# words of the command are joined and read by a shell. Environment, folder, input and output are the caller's, who may
# be in any host of the same lab.
set -eu

while getopts :B:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w: option; do
    case $option in
        :) echo "weft lab: option -$OPTARG needs a value" >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -n "${WEFT_LAB:-}" ] || { echo "weft lab: no lab here: the agent works inside weft lab only" >&2 && exit 2; }
[ $# -ge 2 ] || { echo "weft lab: expected [options] HOST COMMAND..." >&2 && exit 2; }

host=${1##*@}
shift
number=${host#lab}
number=${number#10.99.0.}
[[ $number =~ ^[1-9][0-9]?$ ]] && [ "$number" -le "$WEFT_LAB_HOSTS" ] ||
    { echo "weft lab: no host $host: expected lab1 to lab$WEFT_LAB_HOSTS" >&2 && exit 2; }

read -ra cores <<<"${WEFT_LAB_CORES:-}"
pinned=()
if [ ${#cores[@]} -gt 0 ]; then pinned=(taskset -c "${cores[number - 1]}"); fi

# ip netns exec brings the host's network, /sys and /etc/hosts.
# shellcheck disable=SC2016
exec ip netns exec "$WEFT_LAB-$number" ${pinned[@]+"${pinned[@]}"} unshare --uts --ipc -- bash -c '
    hostname "$1" && mount -t tmpfs -o mode=1777 weft /dev/shm && exec bash -c "$2"' - "lab$number" "$*"
