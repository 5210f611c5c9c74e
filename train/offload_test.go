package train

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"triax/configs"
	"triax/zero"
)

// TestOffloadIsBitEqual: where optimizer state lies changes no bit of losses, gradients, weights or states, and nothing is left in the folder.
func TestOffloadIsBitEqual(t *testing.T) {
	for stage := range 4 {
		for _, rule := range []string{"adamw", "sgd"} {
			cfg := base()
			cfg.Mesh.DP, cfg.Mesh.TP, cfg.Zero.Stage, cfg.Optim.Rule = 3, 2, stage, rule
			corpus := letters(t, cfg.Model.Vocab, gridTokens)
			want, in := cutRun(t, cfg, corpus)
			off := *cfg
			off.Zero.Offload, off.Zero.OffloadDir = zero.OffloadDisk, t.TempDir()
			got, out := cutRun(t, &off, corpus)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("ZeRO %d %s: not bit-equal: %s", stage, rule, compare(got, want).where)
			}
			for i, m := range out.Memory {
				if m.Optimizer != 0 || m.Offloaded != in.Memory[i].Optimizer || in.Memory[i].Offloaded != 0 {
					t.Errorf("ZeRO %d %s rank %d: %d bytes of state in memory and %d in files; %d without offload", stage, rule, i, m.Optimizer, m.Offloaded, in.Memory[i].Optimizer)
				}
			}
			if left, err := os.ReadDir(off.Zero.OffloadDir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		}
	}
}

// TestOffloadWindows: state larger than a window is updated in several, to the same bits.
func TestOffloadWindows(t *testing.T) {
	cfg := base()
	cfg.Model.Width, cfg.Model.Hidden, cfg.Model.Layers, cfg.Train.Steps, cfg.Train.Batch = 240, 2400, 2, 2, 6
	corpus := letters(t, cfg.Model.Vocab, gridTokens)
	want, _ := cutRun(t, cfg, corpus)
	cfg.Zero.Offload, cfg.Zero.BucketElements, cfg.Zero.OffloadDir = zero.OffloadDisk, 1<<30, t.TempDir()
	got, _ := cutRun(t, cfg, corpus)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("not bit-equal: %s", compare(got, want).where)
	}
}

// TestOffloadRefused: a folder that cannot hold the files is an error before the first step, which names the rank.
func TestOffloadRefused(t *testing.T) {
	cfg := base()
	cfg.Mesh.DP = 2
	cfg.Zero.Offload, cfg.Zero.OffloadDir = zero.OffloadDisk, filepath.Join(t.TempDir(), "none")
	_, _, err := tryCutRun(cfg, letters(t, cfg.Model.Vocab, gridTokens))
	if err == nil || !strings.Contains(err.Error(), "zero.offload") || !strings.Contains(err.Error(), "rank ") || !strings.Contains(err.Error(), "set-up") {
		t.Errorf("%v", err)
	}
	_, err = configs.Parse([]byte("[zero]\noffload = \"nvme\"\n"), nil)
	if err == nil || !strings.Contains(fmt.Sprint(err), "want one of none, disk") {
		t.Errorf("%v", err)
	}
}

// TestOffloadFaults: rows of the fault list on states kept outside of memory, against the uncut model.
func TestOffloadFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		clip  float64
		stage int
	}{
		{"B28 all gradients of several backward passes count, ZeRO 1", 0, 1},
		{"B28 all gradients of several backward passes count, ZeRO 2", 0, 2},
		{"B28 all gradients of several backward passes count, ZeRO 3", 0, 3},
		{"B50 the norm is the one before clipping, and what clips", 1e-2, 2},
		{"B50 the norm is the one before clipping, and what clips, ZeRO 3", 1e-2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, rule := range []string{"sgd", "adamw"} {
				cfg := base()
				cfg.Mesh.DP, cfg.Zero.Stage, cfg.Optim.Rule, cfg.Optim.Clip = 2, c.stage, rule, c.clip
				cfg.Pipeline.Microbatches = cfg.Train.Batch / 2 // one sample a backward pass
				cfg.Zero.Offload, cfg.Zero.OffloadDir = zero.OffloadDisk, t.TempDir()
				corpus := letters(t, cfg.Model.Vocab, gridTokens)
				got, out := cutRun(t, cfg, corpus)
				want := uncut(t, cfg, corpus)
				if d := compare(got, want); d.relative > equalTo {
					t.Errorf("%s: off by %.2g: %s", rule, d.relative, d.where)
				}
				if out.Memory[0].Offloaded == 0 || c.clip > 0 && got.norm[0] <= c.clip {
					t.Errorf("%s: %d bytes in files, norm %v, clip %v", rule, out.Memory[0].Offloaded, got.norm[0], c.clip)
				}
			}
		})
	}
}
