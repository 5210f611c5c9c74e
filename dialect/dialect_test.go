package dialect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"triax/configs"
)

var update = flag.Bool("update", false, "rewrite golden files")

// cases are a system's configurations in testdata: a name and, behind world=, the number of ranks.
func cases(t *testing.T, of System) (list []txtar.File, world []int) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", string(of)+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range a.Files {
		name, ranks, _ := strings.Cut(f.Name, " world=")
		n, _ := strconv.Atoi(ranks)
		a.Files[i].Name = name
		world = append(world, n)
	}
	return a.Files, world
}

// options are what goes with a file; a DeepSpeed file names no model.
func options(t *testing.T, of System, world int) Options {
	o := Options{World: world}
	if of == DeepSpeed {
		c, err := configs.Parse([]byte("[model]\npreset = \"llama2-7b\"\n[train]\nbatch = 64\nsteps = 500\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Base = c
	}
	return o
}

// TestReadings: what is read of each configuration, what differs and what is refused.
func TestReadings(t *testing.T) {
	for _, of := range Systems {
		t.Run(string(of), func(t *testing.T) {
			var b strings.Builder
			files, world := cases(t, of)
			for i, f := range files {
				fmt.Fprintf(&b, "-- %s --\n", f.Name)
				r, err := Import(of, string(f.Data), options(t, of, world[i]))
				if err != nil {
					fmt.Fprintln(&b, err)
					continue
				}
				fmt.Fprint(&b, summary(r))
			}
			path := filepath.Join("testdata", string(of)+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func summary(r *Reading) string {
	c := r.Config
	m, p, z, o := c.Mesh, c.Pipeline, c.Zero, c.Optim
	var b strings.Builder
	fmt.Fprintf(&b, "model     %s L %d D %d H %d K %d F %d V %d S %d tied %v recompute %s %d experts %d\n", c.Model.Family, c.Model.Layers, c.Model.Width, c.Model.Heads, c.Model.KVHeads, c.Model.Hidden,
		c.Model.Vocab, c.Model.Sequence, c.Model.Tied, c.Model.Recompute, c.Model.RecomputeLayers, c.Model.Experts)
	fmt.Fprintf(&b, "mesh      %d ranks: pp %d dp %d x %d ep %d cp %d tp %d, sequence parallel %v\n", r.World, m.PP, m.Replicate, m.DP, m.EP, m.CP, m.TP, m.SequenceParallel)
	fmt.Fprintf(&b, "pipeline  %s, chunks %d, microbatches %d, layers %v; batch %d\n", p.Schedule, p.Chunks, p.Microbatches, p.Layers, c.Train.Batch)
	fmt.Fprintf(&b, "zero      %d, overlap %v, bucket %d, keep %v\n", z.Stage, z.Overlap, z.BucketElements, z.KeepAfterForward)
	fmt.Fprintf(&b, "optim     %s lr %g to %g %s, warmup %d of %d, betas %v, decay %g, clip %g, %v\n", o.Rule, o.LR, o.MinLR, o.Curve, o.Warmup, c.Train.Steps, o.Betas, o.WeightDecay, o.Clip, c.Cluster["precision"])
	fmt.Fprintf(&b, "taken     %d\n", len(r.Taken))
	for _, n := range r.Differs {
		fmt.Fprintf(&b, "differs   %v\n", n)
	}
	var names []string
	for _, n := range r.Unused {
		names = append(names, n.Name)
	}
	fmt.Fprintf(&b, "unused    %s\n", orNone(names))
	return b.String()
}

// TestThereAndBack: what was read, written out again and read once more, is the same configuration.
func TestThereAndBack(t *testing.T) {
	for _, of := range Systems {
		back := 0
		files, world := cases(t, of)
		for i, f := range files {
			o := options(t, of, world[i])
			first, err := Import(of, string(f.Data), o)
			if err != nil {
				continue
			}
			text, err := Export(of, first.Config)
			if err != nil {
				t.Logf("%s %s: %v", of, f.Name, err) // settings that had to differ: named
				continue
			}
			o.World = first.World
			second, err := Import(of, text, o)
			if err != nil {
				t.Errorf("%s %s: written as\n%s\n%v", of, f.Name, text, err)
				continue
			}
			back++
			a, b := configs.Resolved(first.Config), configs.Resolved(second.Config)
			same(t, fmt.Sprintf("%s %s", of, f.Name), text, a, b)
		}
		if back < 6 {
			t.Errorf("%s: only %d configurations went there and back", of, back)
		}
	}
}

func same(t *testing.T, name, text string, a, b *configs.Config) {
	t.Helper()
	if a.Mesh.World() == 1 || a.Zero.Stage == 3 { // a bucket is a layer
		a.Zero.BucketElements, b.Zero.BucketElements = 0, 0
	}
	a.Cluster["gpus_per_node"], b.Cluster["gpus_per_node"] = nil, nil
	if !reflect.DeepEqual(a, b) {
		x, _ := a.TOML()
		y, _ := b.TOML()
		t.Errorf("%s: written as\n%s", name, text)
		was, is := strings.Split(string(x), "\n"), strings.Split(string(y), "\n")
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] {
				t.Errorf("first %s, then %s", was[i], is[i])
			}
		}
	}
}
