package plan

import (
	"triax/configs"
	"triax/nn"
	"triax/schedule"
)

// candidates lists every layout that the rules allow on so many ranks.
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
			dp := ranks / tp / pp
			for _, micro := range microSizes(base.Train.Batch, dp) {
				for _, s := range schedules(pp, model.Layers) {
					for _, z := range zeroes(dp, c) {
						for _, mode := range recomputes(model) {
							for _, sequence := range []bool{false, true} {
								if sequence && tp == 1 {
									continue
								}
								cfg := *base
								cfg.Mesh.TP, cfg.Mesh.PP, cfg.Mesh.DP, cfg.Mesh.Replicate, cfg.Mesh.CP, cfg.Mesh.EP = tp, pp, dp/z.replicate, z.replicate, 1, 1
								cfg.Mesh.SequenceParallel = sequence
								cfg.Pipeline = schedule.Config{Schedule: s.name, Chunks: s.chunks, Microbatches: base.Train.Batch / dp / micro, Balance: base.Pipeline.Balance}
								cfg.Zero.Stage, cfg.Model.Recompute = z.stage, mode
								if configs.Resolved(&cfg).Validate() == nil {
									out = append(out, &cfg)
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

// zeroes are the ZeRO stages at d data ranks, and hybrid sharding by nodes at stage 3.
func zeroes(d int, c Cluster) []zeroChoice {
	if d == 1 {
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
