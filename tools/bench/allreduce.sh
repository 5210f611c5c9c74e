#!/usr/bin/env bash
# All-reduce among processes: raw MPI in C, triax's transport over it, PyTorch's gloo if PYTHON names a python that has it, and ranks as
# goroutines beside a plain copy. allreduce.sh [MIB], from the repository root.
set -euo pipefail
mib=${1:-64}
# Without this, MPI and gloo spend their time on fresh pages: they take temporary memory for each call.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=34359738368:glibc.malloc.top_pad=268435456
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
if [ -n "${PYTHON:-}" ]; then
  for n in 2 4; do "$PYTHON" tools/bench/gloo.py $n "$mib"; done
fi
go test -run '^$' -bench "^BenchmarkCopy$|Collective/AllReduce/.*/KiB=$((mib << 10))" -count 3 ./comm/local | grep GB/s
