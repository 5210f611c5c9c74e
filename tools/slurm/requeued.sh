#!/usr/bin/env bash
# deploy's sbatch script under a real Slurm: a job gets SIGTERM, as it does before its time is over, saves, is requeued and goes on to its end. For
# single.sh: tools/slurm/single.sh 4 tools/slurm/requeued.sh TRIAX CONFIG.toml STEPS [triax flags for four ranks]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export TRIAX=$1 config=$2 steps=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TRIAX_OUT=$work/run
job=$(sbatch --parsable --nodes=1 --ntasks-per-node=4 --chdir="$work" --output="$work/log" "$here/../../deploy/slurm/triax.sbatch" "$config" --steps "$steps" "$@")
until [ "$(cat "$TRIAX_OUT/metrics.jsonl" 2>/dev/null | wc -l)" -gt 20 ]; do sleep 0.2; done
scancel --signal=TERM "$job"
for _ in $(seq 300); do
  state=$(squeue -h -o %T -j "$job" 2>/dev/null || true)
  [ "$state" != "${last-}" ] && echo "$(date +%T) job $job: ${state:-gone}"
  last=$state
  [ -e "$TRIAX_OUT/result.json" ] && [ "$(wc -l <"$TRIAX_OUT/metrics.jsonl")" = "$steps" ] && [ "$state" != RUNNING ] && break
  sleep 1
done
scontrol show job "$job" | grep -oE '(JobState|Restarts|ExitCode)=[^ ]*' | paste -sd' '
cat "$work/log"
[ "$(wc -l <"$TRIAX_OUT/metrics.jsonl")" = "$steps" ]
