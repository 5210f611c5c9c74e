package report

import (
	"fmt"
	"math"

	"triax/configs"
	"triax/plan"
	"triax/schedule"
)

// Scale is a layout with more or fewer data ranks.
type Scale struct {
	Ranks   int
	PerRank float64 // tokens a second of one rank
	Step    float64
}

// Scaling plans a layout with 1/8 to 8 times its data ranks: at the same global batch, and with a batch that grows with the ranks. Sizes that the
// rules do not allow are left out.
func Scaling(p *plan.Plan) (fixed, growing []Scale) {
	for _, f := range []float64{0.125, 0.25, 0.5, 1, 2, 4, 8} {
		if s, ok := scaled(p, f, false); ok {
			fixed = append(fixed, s)
		}
		if s, ok := scaled(p, f, true); ok {
			growing = append(growing, s)
		}
	}
	return fixed, growing
}

// scaled multiplies the data axis: the replicas of hybrid sharding where there are some, else the ranks that share states. The size of a microbatch
// stays as it is.
func scaled(p *plan.Plan, f float64, grow bool) (Scale, bool) {
	cfg := *p.Config
	degree := &cfg.Mesh.DP
	if cfg.Mesh.Replicate > 1 {
		degree = &cfg.Mesh.Replicate
	}
	n := float64(*degree) * f
	batch, micros := float64(cfg.Train.Batch), float64(max(1, cfg.Pipeline.Microbatches))
	if grow {
		batch *= f
	} else {
		micros /= f
	}
	if n != math.Trunc(n) || batch != math.Trunc(batch) || micros != math.Trunc(micros) || n < 1 || micros < 1 {
		return Scale{}, false
	}
	*degree, cfg.Train.Batch, cfg.Pipeline.Microbatches = int(n), int(batch), int(micros)
	if cfg.Mesh.World() > 1<<20 || cfg.Validate() != nil || tooLong(&cfg) {
		return Scale{}, false
	}
	q, err := plan.On(configs.Resolved(&cfg), p.Device)
	if err != nil {
		return Scale{}, false
	}
	return Scale{q.Ranks, q.TokensPerS / float64(q.Ranks), q.Step.Seconds}, true
}

// tooLong says that a schedule is not worth making for a side picture. Those of V shape are found by search, in a time that grows with the square of
// their length.
func tooLong(c *configs.Config) bool {
	n := c.Mesh.PP * max(1, c.Pipeline.Microbatches) * schedule.ChunksOf(c.Pipeline.Schedule, c.Pipeline.Chunks)
	if schedule.Searched(c.Pipeline.Schedule) {
		return n > 1<<11
	}
	return n > 1<<16
}

// ScalingChart draws what Scaling found; false where there is too little to draw.
func ScalingChart(fixed, growing []Scale) (Chart, bool) {
	if len(fixed) < 2 && len(growing) < 2 {
		return Chart{}, false
	}
	var series []Series
	for _, l := range []struct {
		name string
		list []Scale
	}{{"batch grows with ranks", growing}, {"same global batch", fixed}} {
		if len(l.list) < 2 {
			continue
		}
		s := Series{Name: l.name}
		for _, x := range l.list {
			s.X, s.Y = append(s.X, float64(x.Ranks)), append(s.Y, x.PerRank)
		}
		series = append(series, s)
	}
	if len(series) == 2 && len(series[1].X) > len(series[0].X) { // labels of the axis are the first one's
		series[0], series[1] = series[1], series[0]
	}
	return lineChart(lineSpec{
		id: "scaling", title: "Tokens/s of each rank as data ranks grow", about: "A flat line scales perfectly. Only the data axis changes.",
		xLabel: "ranks", logX: true, zero: true, marks: true, series: series,
		xText: func(v float64) string { return fmt.Sprintf("%.0f", v) }, yText: count,
	}), true
}

// count prints a number with at most three digits before its unit.
func count(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.3gG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
