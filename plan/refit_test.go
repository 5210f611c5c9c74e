package plan

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dial is a constant that a program's rows on one device are fitted for.
type dial struct {
	name string
	of   func(*Cluster) *float64
	top  float64
}

var dials = []dial{
	{"efficiency", func(c *Cluster) *float64 { return &c.Efficiency }, 0.95},
	{"efficiency8", func(c *Cluster) *float64 { return &c.Efficiency8 }, 0.95},
	{"depth", func(c *Cluster) *float64 { return &c.Depth }, 1e4},
	{"attention", func(c *Cluster) *float64 { return &c.AttentionRate }, 0.95},
	{"score passes", func(c *Cluster) *float64 { return &c.ScorePasses }, 20},
	{"stream", func(c *Cluster) *float64 { return &c.Stream }, 0.95},
	{"host", func(c *Cluster) *float64 { return &c.Host }, 1e-3},
	{"tensor hidden", func(c *Cluster) *float64 { return &c.TensorHidden }, 1},
}

// dialsOf are those that a program's entry sets.
func dialsOf(program string, c Cluster) (out []dial) {
	for _, r := range fitted {
		if r.software != program || !r.on(c.Name) {
			continue
		}
		for i, x := range []float64{r.efficiency, r.efficiency8, 0, r.attention, 0, r.stream, r.host, r.tensorHidden} {
			if x > 0 {
				out = append(out, dials[i])
			}
		}
		return out
	}
	if program == "megatron-2021" {
		for _, d := range dials {
			if slices.Contains([]string{"efficiency", "depth", "attention", "score passes", "host"}, d.name) {
				out = append(out, d)
			}
		}
	}
	return out
}

// misfit is the mean error, with the dials at x; a source weighs as many rows as it has, but at most 30.
func misfit(t *testing.T, rows []Measured, ds []dial, x []float64) (float64, []Score) {
	t.Helper()
	set := slices.Clone(rows)
	for i := range set {
		for j, d := range ds {
			*d.of(&set[i].Cluster) = x[j]
		}
	}
	list, err := Check(set)
	if err != nil {
		t.Fatal(err)
	}
	sum, all, scores := 0.0, 0.0, Scores(list)
	for _, s := range scores {
		w := float64(min(30, s.Rows))
		sum += w * s.Mean
		all += w
	}
	return sum / all, scores
}

// refit turns one dial after another while that helps, by less and less.
func refit(t *testing.T, all []Measured, ds []dial) []float64 {
	t.Helper()
	rows := thinned(all, 100)
	x := make([]float64, len(ds))
	for i, d := range ds {
		x[i] = *d.of(&rows[0].Cluster)
	}
	best, _ := misfit(t, rows, ds, x)
	for step := 0.1; step > 0.02; {
		better := false
		for i, d := range ds {
			for _, by := range []float64{1 + step, 1 / (1 + step)} {
				was := x[i]
				x[i] = math.Min(d.top, was*by)
				if v, _ := misfit(t, rows, ds, x); v < best-1e-6 {
					best, better = v, true
				} else {
					x[i] = was
				}
			}
		}
		if !better {
			step /= 2
		}
	}
	return x
}

// thinned keeps about so many rows of a source, evenly taken.
func thinned(rows []Measured, most int) (out []Measured) {
	count, seen := map[string]int{}, map[string]int{}
	for _, m := range rows {
		count[m.Source]++
	}
	for _, m := range rows {
		if seen[m.Source]%(1+(count[m.Source]-1)/most) == 0 {
			out = append(out, m)
		}
		seen[m.Source]++
	}
	return out
}

// TestRefit searches the constants of every program again on the tables of TRIAX_MEASURED (files or folders, joined by commas), and once without each of
// its sources: the error there is what an unseen source may expect. The constants in use must be about as good as those found.
func TestRefit(t *testing.T) {
	where := os.Getenv("TRIAX_MEASURED")
	if where == "" {
		t.Skip("TRIAX_MEASURED names no tables of measured runs")
	}
	groups := map[string][]Measured{}
	for _, m := range tables(t, where) {
		for _, r := range fitted {
			if r.software == m.Program && r.on(m.Cluster.Name) {
				key := m.Program + " on " + r.devices
				groups[key] = append(groups[key], m)
			}
		}
		if m.Program == "megatron-2021" && m.Config.Zero.Stage != 3 { // ZeRO-3's rows ask for what no constant here says
			groups["megatron-2021"] = append(groups["megatron-2021"], m)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		t.Run(key, func(t *testing.T) { refitGroup(t, groups[key]) })
	}
}

func refitGroup(t *testing.T, rows []Measured) {
	ds := dialsOf(rows[0].Program, rows[0].Cluster)
	now := make([]float64, len(ds))
	for i, d := range ds {
		now[i] = *d.of(&rows[0].Cluster)
	}
	used, scores := misfit(t, rows, ds, now)
	t.Logf("in use %s: %s", dialText(ds, now), errorText(scores))
	best := refit(t, rows, ds)
	found, scores := misfit(t, rows, ds, best)
	t.Logf("found  %s: %s", dialText(ds, best), errorText(scores))
	if used > 1.25*found {
		t.Errorf("the constants in use err by %.3f, those found by %.3f", used, found)
	}
	parts := map[string]func(Measured) bool{}
	for _, s := range scores {
		parts[s.Source] = func(m Measured) bool { return m.Source == s.Source }
	}
	if len(parts) == 1 { // one source: its second half is what the first did not show
		middle := rows[len(rows)/2].ID
		at := slices.IndexFunc(rows, func(m Measured) bool { return m.ID == middle })
		late := map[string]bool{}
		for _, m := range rows[at:] {
			late[m.ID] = true
		}
		parts = map[string]func(Measured) bool{"its second half": func(m Measured) bool { return late[m.ID] }}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		rest := slices.DeleteFunc(slices.Clone(rows), parts[name])
		out := slices.DeleteFunc(slices.Clone(rows), func(m Measured) bool { return !parts[name](m) })
		if len(rest) < 2*len(ds) {
			t.Logf("without %s %d rows are left for %d constants", name, len(rest), len(ds))
			continue
		}
		x := refit(t, rest, ds)
		_, scores := misfit(t, out, ds, x)
		t.Logf("without %s (%s): there %s", name, dialText(ds, x), errorText(scores))
	}
}

func tables(t *testing.T, where string) (rows []Measured) {
	t.Helper()
	for _, path := range strings.Split(where, ",") {
		files := []string{path}
		if found, _ := filepath.Glob(filepath.Join(path, "*.csv")); len(found) > 0 {
			files = found
		}
		for _, f := range files {
			r, err := os.Open(f)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			some, _, err := ReadMeasured(r)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, slices.DeleteFunc(some, func(m Measured) bool { return m.Untimed })...)
		}
	}
	return rows
}

func dialText(ds []dial, x []float64) string {
	var out []string
	for i, d := range ds {
		out = append(out, fmt.Sprintf("%s %.4g", d.name, x[i]))
	}
	return strings.Join(out, ", ")
}

func errorText(scores []Score) string {
	var out []string
	for _, s := range scores {
		out = append(out, fmt.Sprintf("%s %d rows %.1f%%/%.1f%%", s.Source, s.Rows, 100*s.Mean, 100*s.Median))
	}
	return strings.Join(out, "; ")
}
