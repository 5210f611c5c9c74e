package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/train"
)

// call runs the command line in a folder of its own.
func call(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	cmd := root()
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		return b.String() + err.Error(), exitCode(err)
	}
	return b.String(), 0
}

const tinyFile = "../../configs/tiny.toml"

// TestBadRequests: every wrong request exits with 2, says field, value, rule and what would work, and writes nothing.
func TestBadRequests(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"train", []string{"usage: triax train"}},
		{"train /does/not/exist.toml", []string{"no such file"}},
		{"frobnicate", []string{"unknown command"}},
		{"train tiny --bogus", []string{"unknown flag"}},
		{"train tiny --set data.source=/does/not/exist", []string{"data.source", "exists"}},
		{"train tiny --pp 9", []string{"mesh.pp = 9", "use mesh.pp = 4"}},
		{"train tiny --dp 3 --zero 7", []string{"train.batch = 16", "15 or 18", "zero.stage = 7"}},
		{"train tiny --schedule zbv", []string{`use "zb-v"`}},
		{"train tiny --schedule dualpipe-v --pp 2 --microbatches 2", []string{"at least 4"}},
		{"train tiny --set mesh.cp=3", []string{"60 or 66"}},
		{"train tiny --set model.layrs=3 --set optim.lr=abc", []string{"did you mean model.layers", "want a number"}},
		{"train tiny --set mesh.ep=2", []string{"no experts"}},
		{"train tiny --set model.experts=4 --set model.top_k=9", []string{"model.top_k = 9", "use 4"}},
		{"draw --schedule foo", []string{"nearest"}},
		{"draw --pp x", []string{"whole number"}},
		{"plan tiny --set cluster.gpu=foo --set cluster.launch_us=-3", []string{"cluster.gpu", "cluster.launch_us"}},
		{"plan tiny --tp 7 --set cluster.gpu=foo --set cluster.network_bandwidth_gbs=0", []string{"mesh.tp = 7", "cluster.gpu", "cluster.network_bandwidth_gbs = 0"}},
		{"search tiny --gpus 7", []string{"gpus = 7"}},
		{"validate /does/not/exist", []string{"no such file"}},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "tiny", tinyFile))
		if args[0] == "train" && len(args) > 1 {
			args = append(args, "--out", out)
		}
		got, code := call(t, args...)
		if code != exitRequest {
			t.Errorf("%s: exit code %d\n%s", c.args, code, got)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not in\n%s", c.args, w, got)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("written: %v, %v", left, err)
	}
}

// TestTrainJSON: the last thing on standard output is one JSON object, and the folder holds what the README says.
func TestTrainJSON(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("a stage, a shard, a slice. ", 400)), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "run")
	out, code := call(t, "train", tinyFile, "--dp", "2", "--pp", "2", "--tp", "2", "--zero", "3", "--microbatches", "2", "--steps", "4", "--set", "optim.warmup=0",
		"--set", "data.source="+text, "--sample", "a sh", "--set", "train.sample_tokens=5", "--json", "--out", folder)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var res train.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil {
		t.Fatalf("%v in %s", err, lines[len(lines)-1])
	}
	if len(res.Loss) != 4 || res.Ranks != 8 || len(res.Memory) != 8 || len(res.IdleMS) != 2 || len(res.Eval) != 1 || !strings.HasPrefix(res.Sample, "a sh") {
		t.Errorf("%+v", res)
	}
	for name, check := range map[string]func([]byte) bool{
		"config.toml": func(b []byte) bool { return bytes.Contains(b, []byte("[mesh]")) },
		"metrics.jsonl": func(b []byte) bool {
			return bytes.Count(b, []byte("\n")) == 4 && json.Valid(b[:bytes.IndexByte(b, '\n')])
		},
		"result.json": json.Valid,
		"ledger.json": json.Valid,
		"trace.json":  func(b []byte) bool { return json.Valid(b) && bytes.Contains(b, []byte(`"0F0"`)) },
	} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !check(b) {
			t.Errorf("%s: %v\n%.300s", name, err, b)
		}
	}
	// The written configuration trains the same model.
	again, code := call(t, "train", filepath.Join(folder, "config.toml"), "--json", "--out", filepath.Join(t.TempDir(), "again"), "--set", "train.sample=")
	var second train.Result
	lines = strings.Split(strings.TrimSpace(again), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &second); code != 0 || err != nil || second.Loss[3] != res.Loss[3] {
		t.Errorf("again: exit code %d, %v, losses %v and %v", code, err, second.Loss, res.Loss)
	}
}

// TestPlanDrawCompare: the commands that only compute print what they promise.
func TestPlanDrawCompare(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"draw --schedule 1f1b --pp 4 --microbatches 8 --weight 1", "makespan 33   idle 27%"},
		{"plan tiny --dp 2 --zero 3", "traffic of one step"},
		{"plan tiny --json", `"traffic"`},
		{"compare a=tiny b=tiny --dp 4", "memory, worst rank"},
		{"search tiny --gpus 2 --show 3", "memory against time"},
	} {
		out, code := call(t, strings.Fields(strings.ReplaceAll(c.args, "tiny", tinyFile))...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %q is not in\n%s", c.args, code, c.want, out)
		}
	}
}
