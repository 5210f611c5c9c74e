#!/usr/bin/env bash
# Four hosts, eight ranks, three faults: a rank killed, a rank stopped, a link cut. Prints the placement, and of each fault how long it took until triax
# launch had ended what was left, what was said, and how the run went on. faults.sh TRIAX CONFIG.toml [triax flags]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
triax=$1 config=$2
shift 2
work=$(mktemp -d)
trap '"$here/hosts.sh" down; rm -rf "$work"' EXIT
"$here/hosts.sh" up 4
for i in 1 2 3 4; do echo "10.77.0.$i slots=2"; done >"$work/hosts"
mesh=(--dp 2 --pp 2 --tp 2 --microbatches 2)
"$here/hosts.sh" run --hostfile "$work/hosts" -n 8 "$triax" doctor "$config" "${mesh[@]}" --ranks mpi "$@" 2>/dev/null

rank_pid() { # the process that is rank $1 of the run in $2
  for p in $(pgrep -f -- "--out $2"); do
    if tr '\0' '\n' <"/proc/$p/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$p"; return; fi
  done
}

now() { date +%s.%N; }

for fault in kill stop cut; do
  run=$work/$fault log=$work/$fault.log
  "$triax" launch -n 8 --restarts 1 --hosts "$work/hosts" --mpiexec "$here/mpirun.sh" train "$config" "${mesh[@]}" --out "$run" --steps 60 \
    --set checkpoint.every=10 --set train.timeout=3 --set train.elastic=true --set train.log_every=20 --set train.eval_batches=0 "$@" >"$log" 2>&1 &
  launcher=$!
  until [ "$(cat "$run/metrics.jsonl" 2>/dev/null | wc -l)" -gt 25 ] || ! kill -0 $launcher 2>/dev/null; do sleep 0.1; done
  victim=$(rank_pid 5 "$run")
  start=$(now)
  case $fault in
  kill) kill -KILL "$victim" ;;
  stop) kill -STOP "$victim" ;;
  cut) "$here/hosts.sh" cut 3 ;;
  esac
  until grep -q '^triax launch:' "$log" || ! kill -0 $launcher 2>/dev/null; do sleep 0.05; done
  ended=$(now)
  wait $launcher
  code=$?
  echo "== $fault: the processes had ended after $(echo "scale=1; ($ended - $start) / 1" | bc) s; triax launch went on, and ended with $code after $(echo "scale=0; ($(now) - $start) / 1" | bc) s"
  grep -hE '^triax( launch)?:|^goes on|^train.elastic|^loss' "$log" | cut -c1-260
  [ $fault = cut ] && "$here/hosts.sh" mend 3
  for p in $(pgrep -f -- "--out $run"); do echo "   left behind: $p"; kill -9 "$p"; done
done
