#!/usr/bin/env bash
# Four hosts, eight ranks, three faults: a rank killed, a rank stopped, a link cut. Prints the placement, and of each fault the time until
# mpirun has ended, what was said, what is left running, and the resumed run. faults.sh TRIAX CONFIG.toml [triax flags]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
triax=$1 config=$2
shift 2
work=$(mktemp -d)
trap '"$here/hosts.sh" down; rm -rf "$work"' EXIT
"$here/hosts.sh" up 4
for i in 1 2 3 4; do echo "10.77.0.$i slots=2"; done >"$work/hosts"
job() { "$here/hosts.sh" run --hostfile "$work/hosts" -n 8 "$triax" "$1" "$config" --dp 2 --pp 2 --tp 2 --microbatches 2 --ranks mpi --set checkpoint.every=10 --set train.timeout=3 "${@:2}"; }
job doctor "$@" 2>/dev/null

rank_pid() { # the process that is rank $1 of the run in $2
  for p in $(pgrep -f -- "--out $2"); do
    if tr '\0' '\n' <"/proc/$p/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$p"; return; fi
  done
}

for fault in kill stop cut; do
  run=$work/$fault
  job train --steps 1000000 --out "$run" "$@" >"$work/$fault.log" 2>&1 &
  launcher=$!
  until [ "$(cat "$run/metrics.jsonl" 2>/dev/null | wc -l)" -gt 25 ]; do sleep 0.1; done
  victim=$(rank_pid 5 "$run")
  start=$(date +%s.%N)
  case $fault in
  kill) kill -KILL "$victim" ;;
  stop) kill -STOP "$victim" ;;
  cut) "$here/hosts.sh" cut 3 ;;
  esac
  timeout 60 tail --pid=$launcher -f /dev/null
  took=$(echo "$(date +%s.%N) - $start" | bc)
  kill -9 $launcher 2>/dev/null
  wait $launcher
  echo "== $fault: mpirun ended with $? after ${took%???????} s; processes left: $(pgrep -fc -- "--out $run")"
  grep -h '^triax:' "$work/$fault.log" | cut -c1-260
  pkill -9 -f -- "--out $run"
  [ $fault = cut ] && "$here/hosts.sh" mend 3
  "$triax" doctor --flight "$run/flight" | cut -c1-260
  saved=$(ls "$run/checkpoints" | grep '^step-' | sort | tail -1)
  last=$(grep -c . "$run/metrics.jsonl")
  echo "   step $last done, newest checkpoint $saved; resumed:"
  job train --steps $((last + 20)) --out "$run" --resume latest "$@" 2>&1 | grep -E "goes on|^loss|^step" | tail -3
done
