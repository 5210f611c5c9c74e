package plan

import (
	"fmt"

	"triax/mesh"
	"triax/nn"
)

// warnings are what a layout does that its numbers alone would not explain.
func (p *paper) warnings(c Cluster) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	cfg := p.cfg
	again := cfg.Model.Recompute != nn.RecomputeNone
	if again && splits(p.sched) {
		most := int64(0)
		for _, st := range p.stages {
			sum := int64(0)
			for _, l := range st.layers {
				sum += l.Residue
			}
			most = max(most, sum)
		}
		say("%s splits backward: what recomputation makes again for the input's half is held until the weights' half, %s a microbatch of a stage; "+
			"where a program makes it twice instead, its cost outweighs the bubble that is saved", cfg.Pipeline.Schedule, Bytes(float64(most)))
	}
	if cfg.Model.Recompute == nn.RecomputeSelective && c.ScorePasses == 0 {
		say("model.recompute = selective: tiled attention stores no scores (the 5as/h of Korthikanti et al. 2022, §4.1), so those cannot be saved; what the attention half of a block makes besides is made again")
	}
	if tp, node := p.mesh.Degree(mesh.TP), c.Links[0].Span; node > 0 && tp > node {
		say("mesh.tp = %d crosses nodes of %d devices: every layer's sums pay the network; use mesh.tp = %d", tp, node, node)
	}
	if m := p.sched.Micros; cfg.Zero.Stage >= 2 && m > 1 {
		calls := fmt.Sprintf("gradients are reduced %d times a step, once a microbatch", m)
		if cfg.Zero.Stage == 3 && !cfg.Zero.KeepAfterForward {
			calls += fmt.Sprintf(", and parameters gathered %d times", 2*m)
		}
		say("zero.stage = %d: %s", cfg.Zero.Stage, calls)
	}
	return out
}
