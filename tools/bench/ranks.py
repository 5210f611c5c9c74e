#!/usr/bin/env python3
"""What cutting costs: two ranks with one thread each against one rank with two, the same model and batch, turn and turn about.

ranks.py [ROUNDS], from the repository root. Pipelines are also shown without the idle share that their schedule has by itself.
"""
import json
import statistics
import subprocess
import sys
import tempfile

MODEL = "model.layers=6 model.width=384 model.heads=6 model.vocab=50304 model.sequence=64 train.batch=16 train.eval_batches=0 data.max_tokens=200000 checkpoint.last=false optim.warmup=0".split()
CUTS = {
    "one rank": ["--set", "cpu.threads_per_rank=2"],
    "dp 2": ["--dp", "2"],
    "dp 2, ZeRO 1": ["--dp", "2", "--zero", "1"],
    "tp 2": ["--tp", "2"],
    "pp 2, 1f1b, 8 microbatches": ["--pp", "2", "--microbatches", "8", "--schedule", "1f1b"],
    "pp 2, zb-h1, 8 microbatches": ["--pp", "2", "--microbatches", "8", "--schedule", "zb-h1"],
}


def run(flags):
    with tempfile.TemporaryDirectory() as folder:
        command = ["bin/triax", "train", "configs/tiny.toml", "--json", "--steps", "8", "--out", folder]
        command += [word for pair in MODEL for word in ("--set", pair)] + flags
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)


subprocess.run(["go", "build", "-o", "bin/triax", "./cmd/triax"], check=True)
results = {name: [] for name in CUTS}
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
    for name, flags in CUTS.items():
        results[name].append(run(flags))
print("| | tokens/s, median (range) | of one rank, median of rounds | idle by schedule | without it |\n|---|---|---|---|---|")
for name, got in results.items():
    rates = [r["tokens_per_s"] for r in got]
    ratio = statistics.median(r["tokens_per_s"] / one["tokens_per_s"] for r, one in zip(got, results["one rank"]))
    idle = got[0]["bubble"]["scheduled"]
    print(f"| {name} | {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) | {ratio:.2f} | {100 * idle:.1f}% | {ratio / (1 - idle):.2f} |")
