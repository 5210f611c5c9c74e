package plan

import (
	"slices"

	"triax/configs"
	"triax/nn"
	"triax/schedule"
)

// candidates lists every layout that the rules allow on so many ranks, resolved.
func candidates(base *configs.Config, c Cluster, ranks int) (out []*configs.Config) {
	model := configs.Resolved(base).Model
	for _, tp := range divisors(ranks) {
		if model.Heads%tp != 0 {
			continue
		}
		for _, pp := range divisors(ranks / tp) {
			if pp > model.Layers {
				continue
			}
			for _, cp := range contexts(model, ranks/tp/pp) {
				for _, ep := range experts(model, ranks/tp/pp/cp) {
					out = append(out, cuts(base, c, configs.MeshConfig{TP: tp, PP: pp, CP: cp, EP: ep, DP: ranks / tp / pp / cp / ep})...)
				}
			}
		}
	}
	return out
}

// cuts lists what is left to choose when the degrees are.
func cuts(base *configs.Config, c Cluster, m configs.MeshConfig) (out []*configs.Config) {
	model := base.Model
	d := m.DP * m.EP
	for _, micro := range microSizes(base.Train.Batch, d) {
		for _, s := range schedules(m.PP, model.Layers) {
			balances := balances(base, s.chunks*m.PP)
			for _, z := range zeroes(m.DP, m.CP*m.EP, c) {
				for _, mode := range recomputes(model) {
					for _, sequence := range []bool{false, true} {
						if sequence && m.TP == 1 {
							continue
						}
						for _, order := range orders(m) {
							for _, balance := range balances {
								cfg := *base
								mesh := m
								mesh.TPOverlap, mesh.SequenceParallel, mesh.Axes = base.Mesh.TPOverlap, sequence, base.Mesh.Axes
								mesh.DP, mesh.Replicate = m.DP/z.replicate, z.replicate
								if order != nil {
									mesh.Axes = order
								}
								cfg.Mesh = mesh
								cfg.Pipeline = schedule.Config{Schedule: s.name, Chunks: s.chunks, Microbatches: base.Train.Batch / d / micro, Balance: balance}
								cfg.Zero.Stage, cfg.Model.Recompute = z.stage, mode
								if r := configs.Resolved(&cfg); r.Validate() == nil {
									out = append(out, r)
								}
							}
						}
					}
				}
			}
		}
	}
	return out
}

// contexts are context-parallel degrees: they leave a rank 4,096 tokens of a sample or more.
func contexts(model nn.Config, ranks int) []int {
	out := []int{1}
	for c := 2; ranks%c == 0 && model.Sequence/c >= 4096; c *= 2 {
		out = append(out, c)
	}
	return out
}

// experts are expert-parallel degrees.
func experts(model nn.Config, ranks int) []int {
	if model.Experts == 0 {
		return []int{1}
	}
	var out []int
	for _, d := range divisors(model.Experts) {
		if ranks%d == 0 {
			out = append(out, d)
		}
	}
	return out
}

// balances are ways to cut the layers: as the configuration says, or by cost where that is another cut.
func balances(base *configs.Config, stages int) []string {
	said := base.Pipeline.Balance
	if stages == 1 || said == "cost" {
		return []string{said}
	}
	even, byCost := *base, *base
	even.Pipeline = schedule.Config{Balance: said}
	byCost.Pipeline = schedule.Config{Balance: "cost"}
	a, errA := configs.Runs(configs.Resolved(&even), stages)
	b, errB := configs.Runs(configs.Resolved(&byCost), stages)
	if errA != nil || errB != nil || slices.Equal(a, b) {
		return []string{said}
	}
	return []string{said, "cost"}
}

func divisors(n int) (out []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			out = append(out, d)
		}
	}
	return out
}

// microSizes are microbatch sizes: powers of two that divide a data rank's samples.
func microSizes(batch, dp int) (out []int) {
	if batch%dp != 0 {
		return nil
	}
	for b := 1; b <= min(16, batch/dp); b *= 2 {
		if batch/dp%b == 0 {
			out = append(out, b)
		}
	}
	return out
}

type scheduleChoice struct {
	name   string
	chunks int
}

// schedules are those worth a price at p ranks: with one rank they are all alike.
func schedules(p, layers int) []scheduleChoice {
	if p == 1 {
		return []scheduleChoice{{"1f1b", 1}}
	}
	out := []scheduleChoice{{"1f1b", 1}, {"zb-h1", 1}}
	for v := 2; v <= 4 && v*p <= layers; v++ {
		out = append(out, scheduleChoice{"interleaved", v})
	}
	return out
}

type zeroChoice struct{ stage, replicate int }

// zeroes are the ZeRO stages at d data ranks, with others along axes that shard too, and hybrid sharding by nodes at stage 3.
func zeroes(d, others int, c Cluster) []zeroChoice {
	if d*others == 1 {
		return []zeroChoice{{0, 1}}
	}
	out := []zeroChoice{{0, 1}, {1, 1}, {2, 1}, {3, 1}}
	if n := c.Links[0].Span; n > 1 && d > n && d%n == 0 {
		out = append(out, zeroChoice{3, d / n})
	}
	return out
}

func recomputes(nn.Config) []string {
	return nn.RecomputeModes
}
