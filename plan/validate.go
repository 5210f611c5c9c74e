package plan

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Checked is a measured run beside its plan.
type Checked struct {
	Measured
	Predicted float64
	Step      Step    // the same by part
	Held      float64 // bytes of the fullest device, planned
	Slots     float64 // kernels of the busiest rank's step: what a fixed cost a kernel multiplies
}

// Error is predicted over measured, less one.
func (c Checked) Error() float64 { return c.Predicted/c.Seconds - 1 }

// MemoryError is the same of the fullest device.
func (c Checked) MemoryError() float64 { return c.Held/c.Peak - 1 }

// Check plans every measured run.
func Check(rows []Measured) ([]Checked, error) {
	out := make([]Checked, len(rows))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range rows {
		g.Go(func() error {
			p, err := On(r.Config, r.Cluster)
			if err != nil {
				return fmt.Errorf("%s: %w", r.ID, err)
			}
			out[i] = Checked{Measured: r, Predicted: p.Step.Seconds, Step: p.Step, Held: p.Memory[p.Worst].Peak,
				Slots: float64(p.Config.Model.Layers*p.Config.Pipeline.Microbatches) / float64(p.Config.Mesh.PP)}
			return nil
		})
	}
	return out, g.Wait()
}

// Score sums up one source.
type Score struct {
	Source       string
	Rows         int     // whose time counts
	Mean, Median float64 // of the absolute error
	Bias         float64 // mean error
	Rank         float64 // rank correlation (Spearman) of predicted and measured times
	Regret       float64 // mean over groups: measured time of the run ranked first over the best measured, less one
	Groups       int     // of two runs or more
	Held         int     // rows that say what the fullest device held
	HeldMean     float64 // mean absolute error of that
}

// String prints one line.
func (s Score) String() string {
	memory := ""
	if s.Held > 0 {
		memory = fmt.Sprintf(", memory %.2f%% over %d", 100*s.HeldMean, s.Held)
	}
	if s.Rows == 0 {
		return fmt.Sprintf("%-20s    0 rows%s", s.Source, memory)
	}
	return fmt.Sprintf("%-20s %4d rows: mean error %5.1f%%, median %5.1f%%, bias %+5.1f%%, rank correlation %.3f, regret %.1f%% over %d groups%s",
		s.Source, s.Rows, 100*s.Mean, 100*s.Median, 100*s.Bias, s.Rank, 100*s.Regret, s.Groups, memory)
}

// Overall sums up all rows as one: its rank correlation is over runs of different models and says little.
func Overall(list []Checked) Score { return score("all", list) }

// Scores sums up by source.
func Scores(list []Checked) (out []Score) {
	by := map[string][]Checked{}
	var names []string
	for _, c := range list {
		if by[c.Source] == nil {
			names = append(names, c.Source)
		}
		by[c.Source] = append(by[c.Source], c)
	}
	slices.Sort(names)
	for _, n := range names {
		out = append(out, score(n, by[n]))
	}
	return out
}

func score(source string, list []Checked) Score {
	s := Score{Source: source}
	var abs []float64
	for _, c := range list {
		if c.Peak > 0 {
			s.Held++
			s.HeldMean += math.Abs(c.MemoryError())
		}
	}
	s.HeldMean /= float64(max(1, s.Held))
	list = slices.DeleteFunc(slices.Clone(list), func(c Checked) bool { return c.Untimed })
	if s.Rows = len(list); s.Rows == 0 {
		return s
	}
	for _, c := range list {
		e := c.Error()
		abs = append(abs, math.Abs(e))
		s.Mean += math.Abs(e) / float64(len(list))
		s.Bias += e / float64(len(list))
	}
	slices.Sort(abs)
	s.Median = abs[len(abs)/2]
	s.Rank = spearman(list)
	groups := map[string][]Checked{}
	for _, c := range list {
		groups[c.Group] = append(groups[c.Group], c)
	}
	for _, g := range groups {
		if len(g) < 2 {
			continue
		}
		s.Groups++
		first, best := g[0], g[0]
		for _, c := range g {
			if c.Predicted < first.Predicted {
				first = c
			}
			if c.Seconds < best.Seconds {
				best = c
			}
		}
		s.Regret += first.Seconds/best.Seconds - 1
	}
	if s.Groups > 0 {
		s.Regret /= float64(s.Groups)
	}
	return s
}

// spearman is the correlation of ranks.
func spearman(list []Checked) float64 {
	n := len(list)
	if n < 2 {
		return 1
	}
	rank := func(of func(Checked) float64) []float64 {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			switch x, y := of(list[a]), of(list[b]); {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return a - b
		})
		out := make([]float64, n)
		for i, j := range order {
			out[j] = float64(i)
		}
		return out
	}
	a, b := rank(func(c Checked) float64 { return c.Predicted }), rank(func(c Checked) float64 { return c.Seconds })
	d := 0.0
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
	}
	return 1 - 6*d/float64(n*(n*n-1))
}
