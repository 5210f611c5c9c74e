#!/usr/bin/env bash
# Network namespaces as hosts of a cluster on one machine: h1, h2, ... on a bridge, each with a host name and an address (10.77.0.N) of its own.
#
#   hosts.sh up N [QDISC]     make N hosts; QDISC shapes what each sends: "netem delay 200us rate 1gbit", or where the kernel has no
#                             netem "tbf rate 1gbit burst 64kb latency 50ms"
#   hosts.sh run MPIRUN-ARGS  mpirun (Open MPI) over the hosts of a host file, from h1; unbound, since each host would bind its first process to the one core 0
#   hosts.sh cut N | mend N   take host N's link down, or up again
#   hosts.sh down             remove all
#
# Needs root and iproute2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

hosts() { ip netns list | awk '/^triax-h/ {print $1}'; }

case "${1:?up, run, cut, mend or down}" in
up)
  n=${2:?how many hosts} shape=${3:-}
  ip link add triax-br type bridge
  ip link set triax-br up
  ip addr add 10.77.0.254/24 dev triax-br # where triax launch can be reached
  for i in $(seq "$n"); do
    ns=triax-h$i
    ip netns add "$ns"
    ip link add "txv$i" type veth peer name eth0 netns "$ns"
    ip link set "txv$i" master triax-br up
    ip -n "$ns" addr add "10.77.0.$i/24" dev eth0
    ip -n "$ns" link set lo up
    ip -n "$ns" link set eth0 up
    # shellcheck disable=SC2086
    if [ -n "$shape" ]; then
      ip netns exec "$ns" tc qdisc add dev eth0 root $shape
    fi
  done
  ;;
run)
  shift
  exec ip netns exec triax-h1 unshare -u sh -c 'hostname 10.77.0.1; exec "$@"' sh \
    mpirun.openmpi --allow-run-as-root --bind-to none --mca plm_rsh_agent "$here/agent.sh" --mca btl tcp,vader,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "$@"
  ;;
cut) ip link set "txv${2:?which host}" down ;;
mend) ip link set "txv${2:?which host}" up ;;
down)
  for ns in $(hosts); do
    ip netns pids "$ns" | xargs -r kill -9
    ip link del "txv${ns#triax-h}" 2>/dev/null || true # or its name stays taken for a while
    ip netns del "$ns"
  done
  ip link del triax-br 2>/dev/null || true
  ;;
*) echo "hosts.sh: $1: want up, run, cut, mend or down" >&2; exit 2 ;;
esac
