package train

import (
	"triax/configs"
	"triax/mesh"
	"triax/nn"
	"triax/schedule"
)

// plan is what all ranks of a run agree on before the first step.
type plan struct {
	cfg     *configs.Config // resolved
	mesh    mesh.Mesh
	sched   *schedule.Schedule
	layers  [][2]int  // flat model layers from, to of each virtual stage
	weights nn.Source // what training starts from
	frozen  bool      // nothing learns: no gradients, no optimizer states
}

// newPlan derives mesh, schedule and layer cut from a validated configuration.
func newPlan(cfg *configs.Config) (*plan, error) {
	cfg = configs.Resolved(cfg)
	p := &plan{cfg: cfg, weights: nn.Seed(cfg.Train.Seed)}
	var err error
	if p.mesh, err = cfg.Mesh.Grid(); err != nil {
		return nil, err
	}
	if p.sched, err = configs.Schedule(cfg); err != nil {
		return nil, err
	}
	p.layers, err = configs.Runs(cfg, p.sched.Stages)
	return p, err
}

// stagesOf lists the virtual stages of a pipeline rank, in order.
func (p *plan) stagesOf(rank int) []int {
	var out []int
	for s, r := range p.sched.Place {
		if r == rank {
			out = append(out, s)
		}
	}
	return out
}

// tiedAcross tells whether first and last stage hold copies of one table on different ranks.
func (p *plan) tiedAcross() bool {
	return p.cfg.Model.Tied && p.sched.Place[0] != p.sched.Place[p.sched.Stages-1]
}

// kvCopies is how many consecutive tensor ranks hold the same key/value head.
func (p *plan) kvCopies() int {
	kv := p.cfg.Model.KVHeads
	if kv == 0 {
		kv = p.cfg.Model.Heads
	}
	return max(1, p.cfg.Mesh.TP/kv)
}
