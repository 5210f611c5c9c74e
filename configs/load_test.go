package configs

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func problemsOf(t *testing.T, text string, overrides ...string) Problems {
	t.Helper()
	c, err := Parse([]byte(text), overrides)
	if err == nil {
		t.Fatalf("accepted: %+v", c)
	}
	var ps Problems
	if !errors.As(err, &ps) {
		t.Fatalf("error is a %T: %v", err, err)
	}
	return ps
}

func TestEmptyFileIsDefault(t *testing.T) {
	c, err := Parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Default(), c); d != "" {
		t.Error(d)
	}
}

func TestFileSetsValues(t *testing.T) {
	c, err := Parse([]byte(`
[model]
layers = 6
rope_base = 500 # a whole number is a number
[optim]
betas = [0.8, 0]
[pipeline]
layers = [6]
[train]
seed = 42
verify = true
out = "x"
[cluster]
gpu = "h100"
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Model.Layers, want.Model.RopeBase = 6, 500
	want.Optim.Betas = []float64{0.8, 0}
	want.Pipeline.Layers = []int{6}
	want.Train.Seed, want.Train.Verify, want.Train.Out = 42, true, "x"
	want.Cluster = map[string]any{"gpu": "h100"}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	ps := problemsOf(t, `
[model]
layrs = 4
heads = "four"
[train]
batch = -3
betas = [0.9, 0.95]
[trian]
steps = 3
[optim]
lr = nan
betas = [0.9, "x"]
`, "zero.stage=7", "mesh.tpp=2", "nonsense", "train.steps=many")
	got := ps.Error()
	for _, want := range []string{
		`model.layrs = 4: line 3: no such key; did you mean model.layers?`,
		`model.heads = "four": line 4: want a whole number; for example 4`,
		`train.betas = [0.9 0.95]: line 7: no such key; did you mean optim.betas?`,
		`trian = a section: line 8: no such section; did you mean train?`,
		`optim.betas = [0.9 x]: line 12: want a list, each element a number; element 2 is not; for example [0.9, 0.95]`,
		`mesh.tpp = "2": no such key; did you mean mesh.tp?`,
		`"nonsense": an override is section.key=value`,
		`train.steps = "many": want a whole number; for example 100`,
		`zero.stage = 7: want 0 to 3; use 3`,
		`optim.lr = NaN: want above 0`,
		`train.batch = -3: want 1 to 1048576; use 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if len(ps) != 11 {
		t.Errorf("%d problems:\n%s", len(ps), got)
	}
}

func TestSyntaxErrorHasItsPlace(t *testing.T) {
	for text, place := range map[string]string{
		"[model]\nlayers = = 3\n":               "line 2",
		"[model\n":                              "line 1",
		"[model]\nlayers = 3\nlayers = 4\n":     "line 3",
		"[train]\nsteps = 99999999999999999999": "line 2",
		"model = 3":                             "model",
	} {
		ps := problemsOf(t, text)
		if !strings.HasPrefix(ps[0].Field, place) {
			t.Errorf("%q: %v", text, ps)
		}
	}
}

func TestOverrides(t *testing.T) {
	c, err := Parse([]byte("[train]\nsteps = 3\n"), []string{
		"train.steps=7", "optim.lr=1e-3", "optim.betas=0.8,0.9", "data.source=a.txt, b c.txt", `train.sample="quoted \n text"`,
		"train.out=plain = text", "mesh.axes=[pp,dp,tp]", "pipeline.layers=[2]", "train.verify=true", "train.seed=9", "model.hidden=1_024",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Train.Steps, want.Optim.LR, want.Optim.Betas = 7, 1e-3, []float64{0.8, 0.9}
	want.Data.Source = []string{"a.txt", "b c.txt"}
	want.Train.Sample, want.Train.Out = "quoted \n text", "plain = text"
	want.Mesh.Axes = []string{"pp", "dp", "tp"}
	want.Pipeline.Layers = []int{2}
	want.Train.Verify, want.Train.Seed, want.Model.Hidden = true, 9, 1024
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

// Every key can be set by an override: to the value it has, written as TOML.
func TestEveryKeyCanBeOverridden(t *testing.T) {
	want := Resolved(Default())
	for _, key := range Keys() {
		v := fields(want)[key]
		text, err := Default().TOML()
		if err != nil {
			t.Fatal(err)
		}
		if !v.CanSet() || !strings.Contains(string(text), key[strings.Index(key, ".")+1:]) {
			t.Errorf("%s is not written", key)
		}
		c := Default()
		if ps := c.override(key + "=" + literal(v.Interface())); len(ps) > 0 {
			t.Error(ps)
		}
		if d := cmp.Diff(v.Interface(), fields(c)[key].Interface()); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	c := Default()
	c.Optim.LR = math.Nextafter(3e-4, 1)
	c.Train.Sample = "a \"b\"\n'c' \\"
	c.Data.Source = []string{"x", "y z"}
	c.Pipeline.Layers = []int{2}
	r := Resolved(c)
	text, err := r.TOML()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(r, Resolved(back)); d != "" {
		t.Error("resolving twice changes", d)
	}
}

func TestFileSizeIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.toml")
	if err := os.WriteFile(path, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, nil); err == nil || !strings.Contains(err.Error(), "at most 1048576 bytes") {
		t.Error(err)
	}
	if _, err := Load(path+".absent", nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
