#!/usr/bin/env python3
"""triax against PyTorch and llm.c at the same shapes: one process, two threads, turn and turn about, every step of random weights.

The host's speed changes by the minute, so only ratios inside one run mean anything; each round measures the multiply-add peak too. From the
repository root:

    tools/bench/peers.py --peer torch=python3:eager --peer torch-new=VENV/bin/python:compile --llmc DIR --out results.jsonl
    tools/bench/peers.py --table results.jsonl

A peer is NAME=PYTHON:KIND; KIND is eager or compile, with -bf16 for autocast. DIR is a checkout of github.com/karpathy/llm.c. Results are added to
the file, so a long comparison may be made in parts (--shape, --rounds).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

SHAPES = {  # layers, width, heads, tokens of a sample, samples, steps
    "124M-4x64": (12, 768, 12, 64, 4, 7),
    "124M-2x256": (12, 768, 12, 256, 2, 6),
    "384-4x64": (6, 384, 6, 64, 4, 12),
    "384-2x256": (6, 384, 6, 256, 2, 10),
}
VOCAB, THREADS = 50304, 2

# PyTorch at its best: huge pages that are kept, threads that do not fight for cores. OpenBLAS chooses its kernels itself.
TUNED = dict(
    OMP_NUM_THREADS=str(THREADS), OMP_WAIT_POLICY="PASSIVE",
    GLIBC_TUNABLES="glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=34359738368:glibc.malloc.top_pad=268435456")


def flop(layers, width, heads, seq, samples, steps):
    """Multiply-adds of a step that no implementation avoids, twice: three products for each weight, and the causal half of attention."""
    tokens = seq * samples
    return 3 * tokens * (2 * (12 * layers * width**2 + VOCAB * width) + 2 * seq * width * layers)


def output(command, env=None):
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def triax(shape, precision):
    layers, width, heads, seq, samples, steps = shape
    settings = {
        "model.layers": layers, "model.width": width, "model.heads": heads, "model.vocab": VOCAB, "model.sequence": seq, "train.batch": samples,
        "train.precision": precision, "train.eval_batches": 0, "data.max_tokens": 200000, "checkpoint.last": "false",
        "cpu.threads_per_rank": THREADS, "optim.warmup": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        command = ["bin/triax", "train", "configs/tiny.toml", "--json", "--steps", str(steps), "--out", folder]
        return json.loads(output(command + [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]))


def torch(shape, python, kind):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")} | TUNED
    command = [python, "tools/bench/torch_step.py"]
    for name, value in zip(("layers", "width", "heads", "seq", "batch", "steps"), shape):
        command += ["--" + name, str(value)]
    kind, _, half = kind.partition("-")
    return json.loads(output(command + ["--compile"] * (kind == "compile") + ["--bf16"] * (half == "bf16"), env).splitlines()[-1])


def llmc(shape, binary):
    env = os.environ | {"OMP_NUM_THREADS": str(THREADS)}
    return json.loads(output([binary, *map(str, shape[:5]), str(min(shape[5], 5))], env).splitlines()[-1])


def peak():
    text = output(["go", "test", "./cpu", "-run", "^$", "-bench", f"^BenchmarkPeak/threads{THREADS}$", "-benchtime", "20x"])
    return {"gflops": float(re.search(r"([\d.]+) GFLOP/s", text)[1])}


def measure(a):
    subprocess.run(["go", "build", "-o", "bin/triax", "./cmd/triax"], check=True)
    runs = {"triax": lambda s: triax(s, "full"), "triax-bf16": lambda s: triax(s, "bf16")}
    for peer in a.peer:
        name, how = peer.split("=", 1)
        python, kind = how.rsplit(":", 1)
        runs[name] = lambda s, python=python, kind=kind: torch(s, python, kind)
    with tempfile.TemporaryDirectory() as folder:
        if a.llmc:
            binary = folder + "/llmc_step"
            output(["gcc", "-Ofast", "-march=native", "-fopenmp", "-w", "-I", a.llmc, "tools/bench/llmc_step.c", "-o", binary, "-lm"])
            runs["llm.c"] = lambda s: llmc(s, binary)
        if a.only:
            runs = {name: run for name, run in runs.items() if name in a.only.split(",")}
        for shape in a.shape or SHAPES:
            for _ in range(a.rounds):
                for name, run in {"peak": lambda s: peak(), **runs}.items():
                    r = run(SHAPES[shape])
                    row = {"shape": shape, "name": name} | {k: r[k] for k in ("gflops", "step_ms", "tokens_per_s", "resident_peak", "version") if k in r}
                    print(json.dumps(row), flush=True)
                    with open(a.out, "a") as f:
                        f.write(json.dumps(row) + "\n")


def table(path):
    rows = [json.loads(line) for line in open(path)]
    for shape in dict.fromkeys(r["shape"] for r in rows):
        here = [r for r in rows if r["shape"] == shape]
        got = lambda name, key: [r[key] for r in here if r["name"] == name and key in r]
        limit = statistics.median(got("peak", "gflops"))
        ours = {half: statistics.median(got("triax" + half, "tokens_per_s") or [0]) for half in ("", "-bf16")}
        print(f"\n{shape}, peak {limit:.0f} GFLOP/s\n\n| | tokens/s, median (range) | triax's ratio | of float32 peak | resident GiB |\n|---|---|---|---|---|")
        for name in dict.fromkeys(r["name"] for r in here if r["name"] != "peak"):
            rates = got(name, "tokens_per_s")
            med = statistics.median(rates)
            tokens = SHAPES[shape][3] * SHAPES[shape][4]
            share = flop(*SHAPES[shape]) / tokens * med / limit / 1e9
            resident = statistics.median(got(name, "resident_peak")) / 2**30
            ratio = ours["-bf16" if name.endswith("bf16") else ""] / med
            print(f"| {name} | {med:.0f} ({min(rates):.0f} to {max(rates):.0f}) | {ratio:.2f} | {100 * share:.0f}% | {resident:.2f} |")


p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--peer", action="append", default=[], help="NAME=PYTHON:KIND")
p.add_argument("--llmc", help="a checkout of llm.c")
p.add_argument("--shape", action="append", choices=SHAPES)
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--only", help="names of those to run, with commas")
p.add_argument("--out", default="peers.jsonl")
p.add_argument("--table", help="print the tables of such a file")
a = p.parse_args()
table(a.table) if a.table else measure(a)
