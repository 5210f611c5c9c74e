package train

import (
	"fmt"

	"triax/configs"
	"triax/mesh"
	"triax/nn"
	"triax/schedule"
)

// plan is what all ranks of a run agree on before the first step.
type plan struct {
	cfg    *configs.Config // resolved
	mesh   mesh.Mesh
	sched  *schedule.Schedule
	layers [][2]int // flat model layers from, to of each virtual stage
}

// newPlan derives mesh, schedule and layer cut from a validated configuration.
func newPlan(cfg *configs.Config) (*plan, error) {
	cfg = configs.Resolved(cfg)
	p := &plan{cfg: cfg}
	var err error
	if p.mesh, err = cfg.Mesh.Grid(); err != nil {
		return nil, err
	}
	if p.sched, err = configs.Schedule(cfg); err != nil {
		return nil, err
	}
	p.layers, err = cutLayers(cfg, p.sched.Stages)
	return p, err
}

// cutLayers gives each virtual stage its run of the flat layer list: its blocks, with the embedding
// before the first and norm, head and loss after the last.
func cutLayers(cfg *configs.Config, stages int) ([][2]int, error) {
	blocks := cfg.Pipeline.Layers
	if len(blocks) == 0 {
		blocks = evenOrByCost(cfg, stages)
	}
	if len(blocks) != stages {
		return nil, fmt.Errorf("pipeline.layers = %v: %d entries for %d virtual stages", blocks, len(blocks), stages)
	}
	total := nn.Count(cfg.Model)
	before := 1
	runs := make([][2]int, stages)
	at := before
	for s, n := range blocks {
		runs[s] = [2]int{at, at + n}
		at += n
	}
	runs[0][0] = 0
	runs[stages-1][1] = total
	return runs, nil
}

// evenOrByCost cuts the blocks as pipeline.balance says: in equal numbers, or in equal work with the output matrix counted.
func evenOrByCost(cfg *configs.Config, stages int) []int {
	if cfg.Pipeline.Balance != "cost" {
		return schedule.CutEven(cfg.Model.Layers, stages)
	}
	block, head := nn.MACs(cfg.Model)
	costs := make([]float64, cfg.Model.Layers)
	for i := range costs {
		costs[i] = block
	}
	return schedule.CutByCost(costs, 0, head, stages)
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
