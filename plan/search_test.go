package plan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"triax/configs"
	"triax/nn"
	"triax/plan"
)

func searched(t *testing.T, c *configs.Config, l plan.Limits) *plan.Found {
	t.Helper()
	cluster, err := plan.Preset("a100-40")
	if err != nil {
		t.Fatal(err)
	}
	f, err := plan.Search(context.Background(), c, cluster, l)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func layouts(list []plan.Choice) (out []string) {
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s %v", c.Plan.Layout, c.Plan.Step.Seconds))
	}
	return out
}

// TestSearchIsExact: the pruned search finds what pricing everything finds, in the same order, also where memory is short.
func TestSearchIsExact(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 6, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	for _, memory := range []float64{40e9, 4e9, 1.5e9} {
		c := big(m, 1, 1, 1, 1, 16)
		pruned := searched(t, c, plan.Limits{Ranks: 8, Memory: memory})
		all := searched(t, c, plan.Limits{Ranks: 8, Memory: memory, Everything: true})
		if all.Tried != all.Legal {
			t.Errorf("%v GB: %d of %d priced", memory/1e9, all.Tried, all.Legal)
		}
		if !slices.Equal(layouts(pruned.Best), layouts(all.Best)) || !slices.Equal(layouts(pruned.Front), layouts(all.Front)) {
			t.Errorf("%v GB: pruned\n%s\nall\n%s", memory/1e9, strings.Join(layouts(pruned.Best), "\n"), strings.Join(layouts(all.Best), "\n"))
		}
		few := searched(t, c, plan.Limits{Ranks: 8, Memory: memory, Keep: 7})
		if !slices.Equal(layouts(few.Best), layouts(all.Best[:7])) || !slices.Equal(layouts(few.Front), layouts(all.Front)) {
			t.Errorf("%v GB: kept\n%s\nfront\n%s\nall\n%s\nfront\n%s", memory/1e9, strings.Join(layouts(few.Best), "\n"), strings.Join(layouts(few.Front), "\n"),
				strings.Join(layouts(all.Best[:7]), "\n"), strings.Join(layouts(all.Front), "\n"))
		}
		for i := 1; i < len(all.Best); i++ {
			if all.Best[i].Plan.Step.Seconds < all.Best[i-1].Plan.Step.Seconds {
				t.Errorf("%v GB: out of order at %d", memory/1e9, i)
			}
		}
		for _, x := range all.Front {
			for _, y := range all.Best {
				a, b := x.Plan, y.Plan
				if b.Step.Seconds < a.Step.Seconds && b.Memory[b.Worst].Peak < a.Memory[a.Worst].Peak {
					t.Errorf("%s is on the front, but %s beats it in both", a.Layout, b.Layout)
				}
			}
		}
		t.Logf("%v GB: %d legal, %d priced when pruned, %d when 7 are wanted, %d fit", memory/1e9, all.Legal, pruned.Tried, few.Tried, len(all.Best))
	}
}

// TestBoundsAreBelow: no layout takes or holds less than its closed formulas say, and most not much more. Also with context and expert ranks, long samples, several
// nodes and other runtimes.
func TestBoundsAreBelow(t *testing.T) {
	dense := nn.Config{Family: nn.GPT2, Layers: 6, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	long := nn.Config{Family: nn.Llama, Layers: 8, Width: 1024, Heads: 8, Vocab: 32000, Sequence: 16384, Recompute: "none"}
	sparse := dense
	sparse.Experts, sparse.TopK, sparse.CapacityFactor = 4, 2, 1
	for name, m := range map[string]nn.Config{"dense": dense, "long": long, "experts": sparse} {
		for _, ranks := range []int{8, 16} {
			cfg := big(m, 1, 1, 1, 1, 16)
			cluster, err := plan.Preset("h100-sxm")
			if err != nil {
				t.Fatal(err)
			}
			cluster.Memory = 1e15
			found, err := plan.Search(context.Background(), cfg, cluster, plan.Limits{Ranks: ranks, Everything: true})
			if err != nil {
				t.Fatal(err)
			}
			b := plan.NewBounds(cfg, cluster, nil)
			var times, holds []float64
			for _, x := range found.Best {
				seconds, bytes, err := b.Of(x.Config)
				if err != nil {
					t.Fatal(err)
				}
				p := x.Plan
				times, holds = append(times, seconds/p.Step.Seconds), append(holds, bytes/p.Memory[p.Worst].Peak)
				if seconds > p.Step.Seconds || bytes > p.Memory[p.Worst].Peak {
					t.Errorf("%s on %d: %s takes %v and holds %v, bounds say %v and %v", name, ranks, p.Layout, p.Step.Seconds, p.Memory[p.Worst].Peak, seconds, bytes)
				}
			}
			slices.Sort(times)
			slices.Sort(holds)
			t.Logf("%s on %d: %d layouts, bounds are in the middle %.0f%% of the time and %.0f%% of the memory", name, ranks, len(times), 100*times[len(times)/2], 100*holds[len(holds)/2])
		}
	}
}

// TestNothingFits: a search that cannot succeed says what came nearest.
func TestNothingFits(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 6, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	f := searched(t, big(m, 1, 1, 1, 1, 16), plan.Limits{Ranks: 4, Memory: 2e8, Everything: true})
	if len(f.Best) != 0 || f.Missed == nil || f.Missed.Plan.Room >= 0 {
		t.Errorf("%d fit, nearest %+v", len(f.Best), f.Missed)
	}
	pruned := searched(t, big(m, 1, 1, 1, 1, 16), plan.Limits{Ranks: 4, Memory: 2e8})
	if len(pruned.Best) != 0 || pruned.Missed == nil || pruned.Missed.Plan.Room != f.Missed.Plan.Room || pruned.Tried >= f.Tried {
		t.Errorf("of %d priced the nearest misses %v, of all %d %v", pruned.Tried, pruned.Missed.Plan.Room, f.Tried, f.Missed.Plan.Room)
	}
}

// TestCompareText: columns, ratios to the base, and footnotes for what does not fit or is not comparable.
func TestCompareText(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 6, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	a, err := plan.New(big(m, 1, 1, 2, 1, 16))
	if err != nil {
		t.Fatal(err)
	}
	c := big(m, 2, 1, 1, 1, 32)
	c.Cluster = map[string]any{"gpu": "a100-80", "memory_gb": 1.0}
	b, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	text := plan.Compare([]plan.Column{plan.ColumnOf("base", a), plan.ColumnOf("other", b)})
	for _, want := range []string{"base", "other", "tp2 pp1 dp1", "x)", "* other does not fit", "* other trains on 16384 tokens a step, base on 8192"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// BenchmarkPlan is the planner's speed: a whole plan, simulation included.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name         string
		pp, micros   int
		layers, rank int
	}{{"7B on 64", 4, 16, 32, 64}, {"175B on 1024", 16, 128, 96, 1024}} {
		b.Run(c.name, func(b *testing.B) {
			m := nn.Config{Family: nn.GPT2, Layers: c.layers, Width: 4096, Heads: 32, Vocab: 51200, Sequence: 2048, Recompute: "full"}
			dp := c.rank / 8 / c.pp
			cfg := big(m, 8, c.pp, dp, c.micros, c.micros*dp)
			c, err := plan.ClusterOf(cfg.Cluster)
			if err != nil {
				b.Fatal(err)
			}
			planner := plan.NewPlanner(c, nil)
			for b.Loop() {
				if _, err := planner.Plan(cfg); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "plans/s")
		})
	}
}

// BenchmarkBounds is the closed formulas' speed.
func BenchmarkBounds(b *testing.B) {
	m := nn.Config{Family: nn.GPT2, Layers: 96, Width: 4096, Heads: 32, Vocab: 51200, Sequence: 2048, Recompute: "full"}
	cfg := configs.Resolved(big(m, 8, 16, 8, 128, 1024))
	c, err := plan.ClusterOf(cfg.Cluster)
	if err != nil {
		b.Fatal(err)
	}
	bounds := plan.NewBounds(cfg, c, nil)
	for b.Loop() {
		if _, _, err := bounds.Of(cfg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "plans/s")
}
