package configs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestOverridesOfFiles: what a configuration differs in from the default makes it again.
func TestOverridesOfFiles(t *testing.T) {
	files, err := filepath.Glob("*.toml")
	more, _ := filepath.Glob("compare/*.toml")
	if files = append(files, more...); err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if strings.HasPrefix(f, "finetune-") {
			continue // they need a downloaded model
		}
		c, err := Load(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := c.Overrides()
		back, err := Parse(nil, list)
		if err != nil {
			t.Errorf("%s: %v\n%q", f, err, list)
			continue
		}
		if d := cmp.Diff(c, back, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %q\n%s", f, list, d)
		}
	}
}

// TestOverridesOfTexts: texts that look like something else, and lists.
func TestOverridesOfTexts(t *testing.T) {
	c := Default()
	c.Train.Out, c.Train.Sample = "12", `say "hi" to 'them' \ now`
	c.Pipeline.Layers = []int{1, 1}
	c.Mesh.PP = 2
	c.Pipeline.Microbatches = 2
	c.Data.Source = []string{"a,b", `c"d`}
	c.Optim.LR = 1e-5
	c.Cluster = map[string]any{"gpu": "a100-80", "watts": int64(400), "hour_price": 2.0}
	back, err := Parse(nil, c.Overrides())
	if err != nil {
		t.Fatalf("%v\n%q", err, c.Overrides())
	}
	if d := cmp.Diff(c, back, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%q\n%s", c.Overrides(), d)
	}
}

// TestOverridesOfPreset: the model's name, and only what differs from it.
func TestOverridesOfPreset(t *testing.T) {
	c, err := Parse(nil, []string{"model.preset=gpt3-175b", "model.sequence=4096", "mesh.tp=8"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"model.preset=gpt3-175b", "mesh.tp=8", "model.sequence=4096"}, c.Overrides()); d != "" {
		t.Error(d)
	}
}
