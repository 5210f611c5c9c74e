#!/usr/bin/env bash
# triax against PyTorch at the same shapes, one process, two threads, turn and turn about: the host's speed changes by the minute, so
# only ratios inside one run mean anything. Needs python3 with torch.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
rounds=${ROUNDS:-3}
go build -o bin/triax ./cmd/triax
tuned=(env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE
  GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=34359738368:glibc.malloc.top_pad=268435456)
# What each round runs: triax in both precisions, and each kind of PyTorch step that is asked for. A release that compiles needs a C++ compiler.
kinds=${KINDS:-eager}
shape() { # layers width heads seq batch steps
  echo "== $1 layers of $2, vocabulary 50304, $5 x $4 tokens"
  for _ in $(seq "$rounds"); do
    for precision in full bf16; do
      bin/triax train configs/tiny.toml --json --steps "$6" --out runs/bench --set optim.warmup=0 --set cpu.threads_per_rank=2 \
        --set model.layers="$1" --set model.width="$2" --set model.heads="$3" --set model.vocab=50304 --set model.sequence="$4" \
        --set train.batch="$5" --set train.eval_batches=0 --set data.max_tokens=200000 --set checkpoint.last=false \
        --set train.precision=$precision 2>/dev/null |
        python3 -c 'import json,sys; r = json.load(sys.stdin); print("triax %-22s %5.0f tokens/s, step %.0f ms, resident %.2f GiB" % (sys.argv[1] + ":", r["tokens_per_s"], r["step_ms"], r["resident_peak"] / 2**30))' $precision
    done
    for kind in $kinds; do # eager, compile, eager-bf16, compile-bf16
      flags=()
      [[ $kind == compile* ]] && flags+=(--compile)
      [[ $kind == *-bf16 ]] && flags+=(--bf16)
      "${tuned[@]}" "$python" tools/bench/torch_step.py --layers "$1" --width "$2" --heads "$3" --seq "$4" --batch "$5" --steps "$6" "${flags[@]}"
    done
  done
}
if [[ $# -gt 0 ]]; then
  shape "$@"
  exit
fi
shape 6 384 6 64 4 10
shape 6 384 6 256 2 8
shape 12 768 12 64 4 6
shape 12 768 12 256 2 5
