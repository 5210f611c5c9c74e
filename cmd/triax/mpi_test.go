package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"triax/checkpoint"
	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// launchers start processes under the two families of MPI.
var launchers = map[string][]string{
	"Open MPI": {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"},
	"MPICH":    {"mpiexec.mpich"},
}

// launched is this binary as so many processes of triax. It skips where the launcher is not installed, but with TRIAX_MPI=1.
func launched(t *testing.T, family string, n int, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	l := launchers[family]
	path, err := exec.LookPath(l[0])
	if err != nil {
		if os.Getenv("TRIAX_MPI") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no %s here", l[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	var out bytes.Buffer
	c := exec.CommandContext(ctx, path, append(append(l[1:len(l):len(l)], "-n", fmt.Sprint(n), os.Args[0]), args...)...)
	c.Env = append(os.Environ(), "TRIAX_TEST_COMMAND=1")
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// TestProcessesEqualGoroutines: eight processes compute what eight goroutines compute, on three mixed meshes: losses, norms, and after plain SGD
// the weights, which are the starting ones less the sum of all gradients; weights and moments after AdamW; and every rank's bytes.
func TestProcessesEqualGoroutines(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("processes and goroutines. ", 800)), 0o644); err != nil {
		t.Fatal(err)
	}
	common := []string{"train", tinyFile, "--steps", "4", "--set", "train.device=float64", "--set", "optim.warmup=0", "--set", "data.source=" + text,
		"--set", "train.batch=8", "--set", "model.width=32", "--set", "train.eval_batches=1", "--set", "model.dropout=0.1"}
	sgd := []string{"--set", "optim.rule=sgd", "--set", "optim.lr=0.1", "--set", "optim.min_lr=0.01"}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"dp2 pp2 tp2 zero3", append([]string{"--dp", "2", "--pp", "2", "--tp", "2", "--zero", "3", "--microbatches", "2", "--set", "zero.overlap=true"}, sgd...)},
		{"pp4 dp2 zero1 adamw", []string{"--pp", "4", "--dp", "2", "--zero", "1", "--microbatches", "4"}},
		{"cp2 dp2 tp2 zero2 sequence-parallel", append([]string{"--dp", "2", "--tp", "2", "--zero", "2", "--set", "mesh.cp=2", "--set", "mesh.sequence_parallel=true"}, sgd...)},
	} {
		whole := filepath.Join(t.TempDir(), "whole")
		one, out := command(append(append(append([]string{}, common...), c.args...), "--out", whole)...)
		if err := one.Run(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for family := range launchers {
			t.Run(c.name+"/"+family, func(t *testing.T) {
				apart := filepath.Join(t.TempDir(), "apart")
				many, out := launched(t, family, 8, append(append(append([]string{}, common...), c.args...), "--out", apart, "--ranks", "mpi")...)
				if err := many.Run(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				equalRuns(t, whole, apart)
			})
		}
	}
}

// equalRuns compares two run folders. Sums regroup, so float64 agrees to about 1e-12.
func equalRuns(t *testing.T, a, b string) {
	t.Helper()
	const bound = 1e-11
	worst := map[string]float64{}
	near := func(what string, x, y float64) {
		diff := math.Abs(x-y) / max(1, math.Abs(x))
		worst[what] = max(worst[what], diff)
		if !(diff <= bound) {
			t.Errorf("%s: %v and %v", what, x, y)
		}
	}
	var x, y struct {
		Loss []float64 `json:"loss"`
		Norm []float64 `json:"grad_norm"`
	}
	readJSON(t, filepath.Join(a, "result.json"), &x)
	readJSON(t, filepath.Join(b, "result.json"), &y)
	if len(x.Loss) == 0 || len(x.Loss) != len(y.Loss) {
		t.Fatalf("%d and %d steps", len(x.Loss), len(y.Loss))
	}
	for i := range x.Loss {
		near("loss", x.Loss[i], y.Loss[i])
		near("gradient norm", x.Norm[i], y.Norm[i])
	}
	var p, q [][]comm.Entry
	readJSON(t, filepath.Join(a, "ledger.json"), &p)
	readJSON(t, filepath.Join(b, "ledger.json"), &q)
	for rank := range p {
		if one, other := booked(p[rank]), booked(q[rank]); one != other {
			t.Errorf("rank %d booked\n%s\nand\n%s", rank, one, other)
		}
	}
	for key, one := range elements(t, a) {
		other := elements(t, b)[key]
		if len(one) != len(other) {
			t.Fatalf("%s: %d and %d elements", key, len(one), len(other))
		}
		for i := range one {
			near("weights and states", one[i], other[i])
		}
	}
	t.Logf("largest relative differences: %v; ledgers of %d ranks alike", worst, len(p))
}

func booked(entries []comm.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// elements are the weights and states of a run's newest checkpoint, in logical coordinates.
func elements(t *testing.T, run string) map[string][]float64 {
	t.Helper()
	c, _, err := checkpoint.Latest(t.Context(), filepath.Join(run, "checkpoints"))
	if err != nil || c == nil {
		t.Fatalf("%v %v", c, err)
	}
	defer c.Close()
	all := map[string][]float64{}
	for _, kind := range append([]string{checkpoint.Weight}, c.States...) {
		for _, name := range c.Names() {
			p := &nn.Param{Name: name, Shape: c.Shape(name)}
			values := make([]float64, tensor.Elements(p.Shape...))
			if err := c.Source(kind).Values(values, p, 0); err != nil {
				t.Fatal(err)
			}
			all[kind+" of "+name] = values
		}
	}
	return all
}

// TestLaunchers: what contradicts the launcher is refused, with a value that works; processes never train alone side by side.
func TestLaunchers(t *testing.T) {
	run := func(t *testing.T, c *exec.Cmd, out *bytes.Buffer, code bool, say ...string) {
		t.Helper()
		if err := c.Run(); err == nil {
			t.Errorf("it ran\n%s", out)
		}
		for _, want := range say {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		if code && c.ProcessState.ExitCode() != exitRequest {
			t.Errorf("exit code %d", c.ProcessState.ExitCode())
		}
	}
	folder := func() string { return filepath.Join(t.TempDir(), "run") }
	t.Run("no launcher", func(t *testing.T) {
		c, out := command("train", tinyFile, "--ranks", "mpi", "--out", folder())
		run(t, c, out, true, "--ranks", "no launcher started this process", "triax launch")
	})
	t.Run("torchrun", func(t *testing.T) {
		c, out := command("train", tinyFile, "--ranks", "mpi", "--out", folder())
		c.Env = append(c.Env, "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost")
		run(t, c, out, true, "torchrun, rank 0 of 2", "use mpirun")
	})
	for family := range launchers {
		t.Run(family+"/goroutines", func(t *testing.T) {
			c, out := launched(t, family, 2, "train", tinyFile, "--out", folder())
			run(t, c, out, false, "would train alone", "use --ranks mpi")
		})
		t.Run(family+"/size", func(t *testing.T) {
			c, out := launched(t, family, 2, "train", tinyFile, "--dp", "2", "--tp", "2", "--ranks", "mpi", "--out", folder())
			run(t, c, out, false, "it has 4 ranks, and the launcher started 2 processes", "start 4 processes, or use mesh.dp = 1")
		})
		t.Run(family+"/library", func(t *testing.T) {
			c, out := launched(t, family, 2, "train", tinyFile, "--dp", "2", "--ranks", "mpi", "--out", folder())
			c.Env = append(c.Env, "TRIAX_LIBMPI=/nonexistent/libmpi.so")
			run(t, c, out, false, "no MPI library can be opened", "/nonexistent/libmpi.so")
		})
	}
}
