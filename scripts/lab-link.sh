#!/usr/bin/env bash
# The links of the lab that the caller is in, from any of its hosts:
#   lab-link.sh down HOST | up HOST   cuts or mends the link between the switch and a host (its number or name)
#   lab-link.sh rate RATE             sets the rate of all links, both directions: a whole number and kbit, mbit or
#                                     gbit; none: not limited
#   lab-link.sh show                  tells state, rate, and what was sent and dropped
set -eu

refuse() {
    echo "weft lab: $*" >&2
    exit 2
}

# Sets rate and delay of what is sent from a device.
shape() {
    local space=$1 device=$2 rate=$3 delay=$4 parent=root
    if [ "$rate" != none ]; then
        # The bucket: one of the hosts' largest packets (gso_max_size) at a slow link, at a fast one the 300 us by which
        # a timer may be late. More would let a short gather pass faster than the rate. The queue: 50 ms, so that hosts
        # which send to the same one lose little while TCP finds their shares.
        tc -n "$space" qdisc replace dev "$device" root handle 1: tbf rate "$rate" \
            burst "$(at_least 20000 "$rate" 300)" limit "$(at_least 500000 "$rate" 50000)"
        parent="parent 1:1"
    else
        tc -n "$space" qdisc replace dev "$device" root noqueue
    fi
    if [ -n "$delay" ]; then
        # Unquoted on purpose: two words.
        # shellcheck disable=SC2086
        tc -n "$space" qdisc replace dev "$device" $parent handle 2: netem delay "$delay" limit 100000
    fi
}

# The bytes that rate $2 carries in $3 us, or $1 if that is more.
at_least() {
    local bits=${2%?bit} bytes
    case $2 in
        *kbit) bits=$((bits * 1000)) ;;
        *mbit) bits=$((bits * 1000000)) ;;
        *gbit) bits=$((bits * 1000000000)) ;;
    esac
    bytes=$((bits / 8 * $3 / 1000000))
    echo $((bytes > $1 ? bytes : $1))
}

[ -n "${WEFT_LAB:-}" ] || refuse "no lab here: links can be changed inside weft lab only"
switch=$WEFT_LAB-switch
case ${1:-} in
    down | up)
        number=${2:-}
        number=${number#lab}
        [[ $number =~ ^[1-9][0-9]?$ ]] && [ "$number" -le "$WEFT_LAB_HOSTS" ] ||
            refuse "$1 ${2:-}: expected a host, 1 to $WEFT_LAB_HOSTS"
        ip -n "$switch" link set "port$number" "$1"
        ;;
    rate)
        [[ ${2:-} =~ ^([1-9][0-9]{0,8}(kbit|mbit|gbit)|none)$ ]] ||
            refuse "rate ${2:-}: expected a whole number and kbit, mbit or gbit, such as 500mbit, or none"
        # The delay is the switch's: once on each way from host to host.
        for ((number = 1; number <= WEFT_LAB_HOSTS; number++)); do
            shape "$WEFT_LAB-$number" eth0 "$2" ""
            shape "$switch" "port$number" "$2" "${WEFT_LAB_DELAY:-}"
        done
        ;;
    show)
        ip -n "$switch" -br link show
        for ((number = 1; number <= WEFT_LAB_HOSTS; number++)); do
            echo "lab$number sends:" && tc -n "$WEFT_LAB-$number" -s qdisc show dev eth0
            echo "lab$number receives:" && tc -n "$switch" -s qdisc show dev "port$number"
        done
        ;;
    *) refuse "expected down HOST, up HOST, rate RATE or show: got ${*:-nothing}" ;;
esac
