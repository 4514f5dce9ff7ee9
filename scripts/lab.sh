# weft lab: several hosts on one machine. Sourced; expects $home and say. Linux only.
#
# A host is a network namespace, and for what runs in it a UTS, IPC and mount namespace (own host name, own /etc/hosts,
# own /dev/shm). A further network namespace is the switch: a bridge with one port for each host. Nothing routes from
# there to anywhere else. lab-agent.sh starts commands in a host, lab-link.sh changes links.

lab_slots=4

lab_help() {
    cat <<'END'
Usage: weft lab [--hosts N] [--rate RATE] [--delay TIME] [--cores yes|no] -- COMMAND...

Makes N hosts on this machine, joined by a switch, runs COMMAND in the first one, and removes everything when COMMAND
ends or is interrupted. An mpirun in COMMAND (Open MPI 4, MPICH 4) starts its ranks on the hosts, without ssh. It fills one
host after another unless told otherwise; weft run --launcher mpi without --mpi-args gives each host as many ranks.

  --hosts N        how many hosts, lab1 to labN: 2 to 64 (default 2)
  --rate RATE      of each link, each direction: a whole number and kbit, mbit or gbit (default: not limited)
  --delay TIME     from any host to any other, one way: a whole number and us or ms (default: none); needs netem
  --cores yes|no   whether each host has its own share of the cores (default: yes where there are enough)

Every host has its own network, host name, /etc/hosts and /dev/shm; files and processes are the machine's. The hosts
reach each other and nothing else. COMMAND finds in its environment:

  WEFT_LAB_HOSTS      the number of hosts
  WEFT_LAB_HOSTFILE   a host file for either mpirun, which both take by themselves: 4 ranks a host, host by host
  WEFT_LAB_LINK       a program: down HOST, up HOST (number or name), rate RATE (all links; or none), show
  OMPI_MCA_..., HYDRA_..., UCX_..., FI_...   what MPI needs to start ranks and to use these links; what is set
                      already stays, but for launch agent, host file and network interface

Needs Linux, root, and the commands ip, tc, unshare, setsid, taskset, hostname and mount. The exit code is COMMAND's; 2 where
the lab cannot be made.

Examples:
  weft lab --rate 1gbit -- mpirun -n 2 --map-by node hostname             Open MPI, one rank a host
  weft lab --rate 1gbit -- mpirun.mpich -n 4 -ppn 2 hostname              MPICH, two ranks a host
  weft lab --hosts 3 --rate 500mbit -- ./weft run --launcher mpi -n 3     one rank a host
  weft lab --rate 1gbit -- bash -c '(sleep 5; $WEFT_LAB_LINK down 2) & ./weft run --launcher mpi -n 8'
END
}

run_lab() {
    local hosts=2 rate= delay= cores= host code=0
    PATH=$PATH:/usr/sbin:/sbin
    while [ $# -gt 0 ]; do
        case $1 in
            --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
            -h | --help)
                lab_help
                return 0
                ;;
            --)
                shift
                break
                ;;
            --hosts | --rate | --delay | --cores)
                [ -n "${2:-}" ] && [ "$2" != -- ] || refuse "option $1 of lab needs a value"
                printf -v "${1#--}" %s "$2"
                shift 2
                ;;
            *) refuse "unknown option $1 of lab: expected --hosts, --rate, --delay, --cores, or -- and a command" ;;
        esac
    done
    [ $# -gt 0 ] || refuse "lab needs a command: weft lab [options] -- COMMAND..."
    [[ $hosts =~ ^[1-9][0-9]?$ ]] && [ "$hosts" -ge 2 ] && [ "$hosts" -le 64 ] ||
        refuse "--hosts $hosts: expected 2 to 64"
    [[ -z $rate || $rate =~ ^[1-9][0-9]{0,8}(kbit|mbit|gbit)$ ]] ||
        refuse "--rate $rate: expected a whole number and kbit, mbit or gbit, such as 500mbit"
    [[ -z $delay || $delay =~ ^[1-9][0-9]{0,5}(us|ms)$ ]] ||
        refuse "--delay $delay: expected a whole number and us or ms, such as 200us"
    check_machine "$rate" "$delay"
    share_cores "$hosts" "$cores"

    remove_abandoned
    export WEFT_LAB=weft-$$ WEFT_LAB_HOSTS=$hosts WEFT_LAB_DELAY=$delay
    export WEFT_LAB_HOSTFILE=/run/$WEFT_LAB/hosts WEFT_LAB_LINK=$home/scripts/lab-link.sh
    # Without these, the shell would end at a signal and run no EXIT trap.
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    lab_ready=false
    trap end_lab EXIT
    watch_launcher
    make_switch
    for ((host = 1; host <= hosts; host++)); do make_host "$host"; done
    if [ -n "$rate$delay" ]; then "$WEFT_LAB_LINK" rate "${rate:-none}"; fi
    lab_ready=true
    tell_mpi
    # In the background, because a trap has to wait for a command in the foreground; with its input, and with ^C, both
    # of which the shell would take from it.
    (trap - INT QUIT && exec "$home/scripts/lab-agent.sh" lab1 "exec$(printf ' %q' "$@")") <&0 9>&- &
    # Silent, because the shell would tell of a signal that ends COMMAND, and COMMAND has its own words.
    wait $! 2>/dev/null || code=$?
    return $code
}

# Tries everything in namespaces that are gone at once.
check_machine() {
    local tool
    [ "$(uname -s)" = Linux ] || refuse "lab needs Linux: this is $(uname -s)"
    [ "$(id -u)" -eq 0 ] || refuse "lab needs root: it makes network namespaces"
    for tool in ip tc unshare setsid taskset hostname mount; do
        command -v $tool >/dev/null || refuse "lab needs the command $tool (of iproute2, util-linux, hostname, mount)"
    done
    try true || refuse "lab needs to make namespaces, which is not permitted here (unshare --net --uts --ipc --mount)"
    try mount -t tmpfs weft /dev/shm || refuse "lab needs to mount, which is not permitted here (tmpfs on /dev/shm)"
    try ip link add name lab1 type veth peer name lab2 || refuse "this kernel has no veth: lab needs it"
    try ip link add name lab1 type bridge || refuse "this kernel has no bridge: lab needs it"
    [ -z "$1" ] || try tc qdisc add dev lo root tbf rate 1gbit burst 64kb limit 1mb ||
        refuse "this kernel has no tbf: --rate needs it"
    [ -z "$2" ] || try tc qdisc add dev lo root netem delay 1ms || refuse "this kernel has no netem: --delay needs it"
}

try() { unshare --net --uts --ipc --mount -- "$@" >/dev/null 2>&1; }

# Exports WEFT_LAB_CORES: the cores of each host, blanks between hosts; empty where all hosts use all cores.
share_cores() {
    local hosts=$1 wish=$2 ranges range core all=() host shares=() share
    IFS=, read -ra ranges < <(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
    for range in "${ranges[@]}"; do
        for ((core = ${range%-*}; core <= ${range#*-}; core++)); do all+=("$core"); done
    done
    case $wish in
        yes)
            [ ${#all[@]} -ge "$hosts" ] || refuse "--cores yes: $hosts hosts, ${#all[@]} cores: expected as many"
            ;;
        no) ;;
        "") [ ${#all[@]} -ge "$hosts" ] && wish=yes ;;
        *) refuse "--cores $wish: expected yes or no" ;;
    esac
    if [ "$wish" = yes ]; then
        # The same number for each: hosts of different speed would show in every figure.
        share=$((${#all[@]} / hosts))
        for ((host = 0; host < hosts; host++)); do
            shares+=("$(IFS=, && echo "${all[*]:host*share:share}")")
        done
    fi
    export WEFT_LAB_CORES="${shares[*]}"
}

# Removes the lab where this process is killed outright: the watcher waits for the end of a pipe that only this process
# can write to, in a session of its own, which a signal to this one's group does not reach.
watch_launcher() {
    # shellcheck disable=SC2016
    exec 9> >(exec setsid bash -c 'say() { :; }; . "$1"; read -r || remove_lab "$2"' \
        - "$home/scripts/lab.sh" "$WEFT_LAB" >/dev/null 2>&1)
    watcher=$!
}

make_switch() {
    mkdir "/run/$WEFT_LAB"
    ip netns add "$WEFT_LAB-switch"
    ip -n "$WEFT_LAB-switch" link add switch type bridge
    ip -n "$WEFT_LAB-switch" link set switch up
}

make_host() {
    local number=$1 name=lab$1 space=$WEFT_LAB-$1 switch=$WEFT_LAB-switch i
    mkdir -p "/etc/netns/$space"
    {
        echo "127.0.0.1 localhost"
        for ((i = 1; i <= WEFT_LAB_HOSTS; i++)); do echo "10.99.0.$i lab$i"; done
    } >"/etc/netns/$space/hosts"
    for ((i = 0; i < lab_slots; i++)); do echo "$name"; done >>"$WEFT_LAB_HOSTFILE"

    ip netns add "$space"
    # The congestion control that every kernel has, and no memory of earlier connections: the same on every machine.
    ip netns exec "$space" sh -c 'cd /proc/sys/net && echo 1 >ipv6/conf/default/disable_ipv6
        echo reno >ipv4/tcp_congestion_control && echo 1 >ipv4/tcp_no_metrics_save'
    # Large frames, as clusters have: less of the rate goes to headers.
    ip -n "$space" link add eth0 mtu 9000 type veth peer name "port$number" netns "$switch" mtu 9000
    # Small bursts: see lab-link.sh.
    ip -n "$space" link set eth0 gso_max_size 18000
    ip -n "$space" address add "10.99.0.$number/24" dev eth0
    ip -n "$space" link set lo up
    ip -n "$space" link set eth0 up
    ip -n "$switch" link set "port$number" master switch up
}

end_lab() {
    local code=$?
    trap "" HUP INT TERM PIPE
    remove_lab "$WEFT_LAB"
    # One line tells the watcher that there is nothing left to do.
    echo >&9 2>/dev/null || :
    exec 9>&-
    wait "$watcher" 2>/dev/null || :
    if [ $code -ne 0 ] && [ $code -lt 128 ] && ! $lab_ready; then refuse "the lab could not be made"; fi
}

# Both MPIs: our launch agent, our hosts, these links. Ranks are not bound to cores, because Open MPI would count cores
# from the machine's first, whatever the host's share; and they yield while they poll, because hosts have few cores.
tell_mpi() {
    export OMPI_MCA_plm_rsh_agent=$home/scripts/lab-agent.sh OMPI_MCA_orte_default_hostfile=$WEFT_LAB_HOSTFILE
    # Goes with the lab, where a killed mpirun leaves it.
    export OMPI_MCA_orte_tmpdir_base=/run/$WEFT_LAB
    export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0
    export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=${OMPI_MCA_btl:-self,vader,tcp}
    export OMPI_MCA_hwloc_base_binding_policy=${OMPI_MCA_hwloc_base_binding_policy:-none}
    export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$home/scripts/lab-agent.sh HYDRA_HOST_FILE=$WEFT_LAB_HOSTFILE
    export HYDRA_IFACE=eth0 UCX_NET_DEVICES=eth0 FI_TCP_IFACE=eth0 FI_SOCKETS_IFACE=eth0
    export UCX_TLS=${UCX_TLS:-tcp,self} FI_PROVIDER=${FI_PROVIDER:-tcp}
}

# The namespaces of lab $1.
lab_spaces() {
    local file
    for file in "/run/netns/$1"-*; do
        [ ! -e "$file" ] || echo "${file##*/}"
    done
}

lab_processes() {
    local space
    for space in $(lab_spaces "$1"); do ip netns pids "$space"; done
}

# Ends what runs in lab $1, politely first, and removes what was made. May be called for half a lab.
remove_lab() {
    local lab=$1 signal turn left=some space
    for signal in TERM KILL; do
        for ((turn = 0; turn < 20; turn++)); do
            left=$(lab_processes "$lab")
            [ -n "$left" ] || break 2
            # Unquoted on purpose: many of them. One that is gone by now is no error.
            # shellcheck disable=SC2086
            [ $((turn % 10)) -ne 0 ] || kill -$signal $left 2>/dev/null || :
            sleep 0.1
        done
    done
    [ -z "$left" ] || say "could not end these processes of the lab: ${left//$'\n'/ }"
    for space in $(lab_spaces "$lab"); do
        # Another may remove the same lab.
        ip netns delete "$space" 2>/dev/null || [ ! -e "/run/netns/$space" ] ||
            say "could not remove the network namespace $space"
    done
    rm -rf "/etc/netns/$lab"-* "/run/$lab"
    if [ -d /etc/netns ]; then rmdir --ignore-fail-on-non-empty /etc/netns; fi
}

# Labs whose launcher was killed outright.
remove_abandoned() {
    local folder lab
    for folder in /run/weft-*; do
        lab=${folder##*/}
        [[ $lab =~ ^weft-([0-9]+)$ ]] || continue
        [ -e "/proc/${BASH_REMATCH[1]}" ] || remove_lab "$lab"
    done
}
