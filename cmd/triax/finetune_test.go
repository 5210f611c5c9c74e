package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/nn"
	"triax/train"
)

// TestFinetuneConfigs: both configurations learn the completions of their examples from a published folder, keep in memory what they promise, and
// end in what the guide says: a whole model, or adapters alone.
func TestFinetuneConfigs(t *testing.T) {
	base := published(t, nn.Config{Family: nn.Llama, KVHeads: 2, Tied: true}, safetensors.F32)
	examples := filepath.Join("..", "..", "examples", "finetune", "ranks.jsonl")
	for _, name := range []string{"finetune-full", "finetune-lora"} {
		run := filepath.Join(t.TempDir(), "run")
		ok := func(args ...string) string {
			t.Helper()
			s, code := call(t, args...)
			if code != 0 {
				t.Fatalf("%v: exit code %d: %s", args, code, s)
			}
			return s
		}
		set := []string{"--set", "model.from=" + base, "--set", "data.source=" + examples, "--set", "model.sequence=64"} // a packed sample is several examples
		out := ok(append([]string{"train", "../../configs/" + name + ".toml", "--json", "--out", run, "--steps", "50", "--set", "optim.lr=0.02"}, set...)...)
		var res train.Result
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil {
			t.Fatal(err)
		}
		if last := res.Loss[len(res.Loss)-1]; last > 0.6*res.Loss[0] {
			t.Errorf("%s: loss %v → %v", name, res.Loss[0], last)
		}
		m := res.Memory[0]
		if full := name == "finetune-full"; full && (m.Optimizer != 0 || m.Offloaded != 2*m.Gradients) || !full && (m.Offloaded != 0 || m.Gradients*2 > m.Parameters) {
			t.Errorf("%s: %+v", name, m)
		}
		eval := func(more ...string) (e train.Score) {
			t.Helper()
			if err := json.Unmarshal([]byte(ok(append([]string{"eval", run, "--json"}, more...)...)), &e); err != nil {
				t.Fatal(err)
			}
			return e
		}
		one, other := eval(), eval("--tp", "1", "--dp", "1", "--pp", "2", "--zero", "0")
		if d := one.Loss - other.Loss; one.Tokens < 400 || one.Tokens != other.Tokens || d > 1e-5 || d < -1e-5 {
			t.Errorf("%s: %v, on another mesh %v", name, one, other)
		}
		ok("export", run, "-o", filepath.Join(run, "whole"))
		s, code := call(t, "export", run, "--adapter", "-o", filepath.Join(run, "adapter"))
		if adapters := name == "finetune-lora"; adapters != (code == 0) {
			t.Errorf("%s: export --adapter: exit code %d: %s", name, code, s)
		}
	}
}
