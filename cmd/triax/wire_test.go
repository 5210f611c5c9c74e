package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"triax/cuda/nccl/fake"
	"triax/train"
)

// TestHubAddress: what the environment names, else the port after torchrun's own.
func TestHubAddress(t *testing.T) {
	for _, c := range []struct{ hub, host, port, want, fault string }{
		{"h:1", "other", "29500", "h:1", ""},
		{"", "node0", "29500", "node0:29501", ""},
		{"", "fe80::1", "29500", "[fe80::1]:29501", ""},
		{"", "", "", "", "neither TRIAX_HUB"},
		{"", "node0", "65535", "", `MASTER_PORT = "65535"`},
	} {
		got, err := hubAddress(func(k string) string {
			return map[string]string{"TRIAX_HUB": c.hub, "MASTER_ADDR": c.host, "MASTER_PORT": c.port}[k]
		})
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// TestRanksAreDevices: a process of one rank trains on an emulated device with the transport for NVIDIA's, as the same device does alone. What cannot
// be is refused.
func TestRanksAreDevices(t *testing.T) {
	emulated(t)
	path, err := fake.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRIAX_LIBNCCL", path)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	args := func(extra ...string) []string {
		folder := filepath.Join(t.TempDir(), "run")
		return append([]string{"train", tinyFile, "--json", "--out", folder, "--steps", "1", "--set", "model.layers=1", "--set", "model.sequence=8", "--set", "train.batch=2", "--set", "train.eval_batches=0", "--set", "optim.warmup=0", "--set", "model.width=32"}, extra...)
	}
	run := func(extra ...string) *train.Result {
		t.Helper()
		out, code := call(t, args(extra...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var res train.Result
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); code != 0 || err != nil {
			t.Fatalf("%v: exit code %d, %v\n%s", extra, code, err, out)
		}
		return &res
	}
	alone := run("--device", "cuda")
	refused := func(want string, extra ...string) {
		t.Helper()
		if out, code := call(t, args(extra...)...); code != exitRequest || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
	refused("neither TRIAX_HUB nor MASTER_ADDR", "--device", "cuda", "--ranks", "nccl")
	t.Setenv("TRIAX_HUB", "127.0.0.1:0")
	refused("its rank is not known", "--device", "cuda", "--ranks", "nccl")
	for k, v := range map[string]string{"TRIAX_RANK": "0", "TRIAX_WORLD_SIZE": "1", "TRIAX_LOCAL_RANK": "0"} {
		t.Setenv(k, v)
	}
	refused("moves the memory of NVIDIA devices only", "--ranks", "nccl")
	if got := run("--device", "cuda", "--ranks", "nccl"); got.Loss[0] != alone.Loss[0] || got.GradNorm[0] != alone.GradNorm[0] {
		t.Errorf("loss %v, norm %v; alone %v, %v", got.Loss, got.GradNorm, alone.Loss, alone.GradNorm)
	}
	t.Setenv("TRIAX_LIBNCCL", "/nowhere/libnccl.so.2")
	if out, code := call(t, args("--device", "cuda", "--ranks", "nccl")...); code == 0 || !strings.Contains(out, "name its file with TRIAX_LIBNCCL") {
		t.Errorf("no library: exit code %d\n%s", code, out)
	}
}
