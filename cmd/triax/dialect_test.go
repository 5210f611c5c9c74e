package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCarryOver: a job's flags become a file that can be priced, and that goes back as flags; wrong requests write nothing.
func TestCarryOver(t *testing.T) {
	dir := t.TempDir()
	job := filepath.Join(dir, "job.toml")
	args := []string{"import-config", "--from", "megatron", "--world", "8", "--gpu", "h100-sxm", "-o", job, "--"}
	args = append(args, strings.Fields("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 51200 "+
		"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 4 --global-batch-size 64 --lr 3e-4 --train-iters 10 --bf16")...)
	out, code := call(t, args...)
	if code != 0 || !strings.Contains(out, "--tensor-model-parallel-size 2: mesh.tp") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if out, code := call(t, "plan", job); code != 0 || !strings.Contains(out, "tp2 pp2 dp2") {
		t.Errorf("plan: exit code %d\n%s", code, out)
	}
	out, code = call(t, "export-config", job, "--to", "megatron")
	for _, want := range []string{"--pipeline-model-parallel-size 2", "--micro-batch-size 4", "--bf16"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("export: exit code %d, no %s in\n%s", code, want, out)
		}
	}
	bad := filepath.Join(dir, "bad.toml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"import-config", "--from", "mgatron", job}, "one of megatron, deepspeed, torchtitan"},
		{[]string{"import-config", "--from", "megatron"}, "want one file"},
		{[]string{"import-config", "--from", "megatron", "/does/not/exist"}, "no such file"},
		{[]string{"import-config", "--from", "megatron", "-o", bad, "--", "--num-layers", "4", "--pipeline-model-paralel-size", "4"}, "did you mean --pipeline-model-parallel-size"},
		{[]string{"export-config", job, "--to", "torchtitan", "-o", bad}, "not among the flavors"},
		{[]string{"export-config", job, "--to", "jax", "-o", bad}, "one of megatron, deepspeed, torchtitan"},
	} {
		out, code := call(t, c.args...)
		if code != exitRequest || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, want %q in\n%s", c.args, code, c.want, out)
		}
	}
	if _, err := os.Stat(bad); err == nil {
		t.Error("a refused request wrote a file")
	}
}
