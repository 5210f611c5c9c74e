package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/cuda/emu"
	"triax/train"
)

// emulated makes the commands of a test find the emulated libraries in place of NVIDIA's.
func emulated(t *testing.T) {
	t.Helper()
	l, _, err := emu.Cached()
	if errors.Is(err, emu.ErrNoCompiler) && os.Getenv("TRIAX_EMU") == "" {
		t.Skip("no g++: the device is not run on the emulator (apt install g++)")
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, paths := range map[string][]string{"TRIAX_LIBCUDA": l.Driver, "TRIAX_LIBNVRTC": l.Compiler, "TRIAX_LIBCUBLASLT": l.BLAS} {
		t.Setenv(name, paths[0])
	}
}

// TestDeviceStates: no library, no device, and what the device cannot do are refused in words of their own, before anything is written.
func TestDeviceStates(t *testing.T) {
	t.Setenv("TRIAX_LIBCUDA", "/nowhere/libcuda.so.1")
	refused := func(name string, want string, args ...string) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), "run")
		out, code := call(t, append([]string{"train", tinyFile, "--device", "cuda", "--out", folder}, args...)...)
		if code != exitRequest || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", name, code, want, out)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: a folder was written", name)
		}
	}
	refused("no library", `train.device = "cuda": a library of NVIDIA's is not installed here`)
	refused("offload", `zero.offload = "disk": optimizer state of train.device = "cuda"`, "--set", "zero.offload=disk")
	refused("rounded products", `use "float", and train.precision = "bf16"`, "--set", "cpu.multiply=bf16")
	refused("threads", `cpu.threads_per_rank = 2: it is the processor's`, "--set", "cpu.threads_per_rank=2")
	refused("large heads", `kernels for heads of up to 256; use 256`, "--set", "model.head_dim=257")
	refused("few large heads", `kernels for heads of up to 256; use 2 or more`, "--set", "model.width=512", "--set", "model.heads=1")
	emulated(t)
	refused("more ranks than devices", `mesh = 8 ranks: this machine has 4 NVIDIA devices`, "--dp", "8")
	t.Setenv("TRIAX_LIBCUBLASLT", "/nowhere/libcublasLt.so")
	refused("no matrix library", `a library of NVIDIA's is not installed here (cuda: blas: library not found`)
	t.Setenv("TRIAX_EMU_DEVICES", "0")
	refused("no device", `NVIDIA's driver is here, but no device behind it`)
}

// TestTrainOnDevice: a run on the device, cut over four of them, goes like one on the processor; its checkpoint is read by either.
func TestTrainOnDevice(t *testing.T) {
	emulated(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	small := []string{"--steps", "2", "--set", "model.layers=2", "--set", "model.sequence=16", "--set", "train.batch=4", "--set", "optim.warmup=0", "--set", "train.eval_batches=1", "--set", "model.width=32"}
	run := func(extra ...string) (*train.Result, string) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), "run")
		out, code := call(t, append(append([]string{"train", tinyFile, "--json", "--out", folder}, small...), extra...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var res train.Result
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); code != 0 || err != nil {
			t.Fatalf("%v: exit code %d, %v\n%s", extra, code, err, out)
		}
		return &res, folder
	}
	near := func(what string, got, want *train.Result) {
		t.Helper()
		for i, x := range want.Loss {
			if math.Abs(got.Loss[i]-x) > 1e-5 {
				t.Errorf("%s: step %d: loss %v, on the processor %v", what, i+1, got.Loss[i], x)
			}
		}
	}
	want, _ := run()
	got, folder := run("--device", "cuda")
	near("uncut", got, want)
	cut, _ := run("--device", "cuda", "--dp", "2", "--pp", "2", "--zero", "1")
	near("on four devices", cut, want)
	var scores [2]train.Score
	for i, device := range []string{"cuda", "float32"} {
		out, code := call(t, "eval", folder, "--json", "--device", device, "--set", "data.max_tokens=4000")
		if err := json.Unmarshal([]byte(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]), &scores[i]); code != 0 || err != nil {
			t.Fatalf("eval on %s: exit code %d, %v\n%s", device, code, err, out)
		}
	}
	if d := math.Abs(scores[0].Loss - scores[1].Loss); !(d < 1e-5) || scores[0].Tokens != scores[1].Tokens {
		t.Errorf("scores %+v", scores)
	}
}
