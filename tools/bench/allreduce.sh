#!/usr/bin/env bash
# All-reduce among processes: raw MPI in C, triax's transport, and ranks as goroutines. allreduce.sh [MIB], from the repository root.
set -euo pipefail
mib=${1:-64}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -o "$dir/mpi.test" ./comm/mpi
for family in "Open MPI" MPICH; do
  if [ "$family" = MPICH ]; then cc=mpicc.mpich run="mpiexec.mpich"; else cc=mpicc.openmpi run="mpirun.openmpi --allow-run-as-root --oversubscribe"; fi
  "$cc" -O2 tools/bench/allreduce.c -o "$dir/raw"
  for n in 2 4; do
    echo "$family"
    $run -n $n "$dir/raw" "$mib"
    TRIAX_MPI_CHILD="$family" TRIAX_MIB=$mib $run -n $n "$dir/mpi.test" -test.run '^TestChildAllReduce$' 2>/dev/null | grep '^triax'
  done
done
go test -run '^$' -bench "Collective/AllReduce/.*/KiB=$((mib << 10))" ./comm/local | grep GB/s
