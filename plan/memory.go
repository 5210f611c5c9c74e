package plan

import (
	"triax/schedule"
	"triax/zero"
)

// Memory is what one pipeline rank holds at its peak, in bytes by part. Parts may peak at different moments; Peak is their sum
// with the allocator's slack.
type Memory struct {
	Weights     float64 `json:"weights"`
	Gradients   float64 `json:"gradients"`
	States      float64 `json:"states"`              // optimizer states, master copy included
	Offloaded   float64 `json:"offloaded,omitempty"` // states in files instead
	Activations float64 `json:"activations"`
	Buffers     float64 `json:"buffers"` // gathered parameters, buckets on their way
	Slack       float64 `json:"slack"`
	Peak        float64 `json:"peak"`
}

// memory adds up pipeline rank r.
func (p *paper) memory(c Cluster, r int) Memory {
	if c.Runtime == MegatronCore {
		return p.megatronMemory(c, r)
	}
	l := p.ranks[r].layout
	w, g, s, largest := l.weights, l.gradients, l.states, float64(l.largest)
	size, grad := float64(c.element()), float64(c.GradientBytes)
	m := Memory{
		Weights: float64(w) * size, Gradients: float64(g) * grad, States: float64(s) * float64(c.StateBytes),
		Activations: float64(p.activations(r)),
	}
	if p.cfg.Optim.Rule == "sgd" {
		states := 1.0
		if p.cfg.Optim.Momentum == 0 {
			states = 0
		}
		m.States = float64(s) * (float64(c.StateBytes) - 8 + 4*states)
	}
	if p.cfg.Zero.Offload == zero.OffloadDisk {
		m.States, m.Offloaded = 0, m.States
	}
	switch z := p.cfg.Zero; z.Stage {
	case 1:
		m.Buffers = float64(s) * grad
	case 2:
		m.Buffers = float64(p.ranks[r].layout.Open()) * grad
	case 3:
		ahead := 1.0
		if z.Overlap {
			ahead += float64(max(1, z.Prefetch))
		}
		m.Buffers = largest*size*ahead + largest*grad
	}
	sum := m.Weights + m.Gradients + m.States + m.Activations + m.Buffers
	m.Slack = c.Slack * sum
	m.Peak = sum + m.Slack
	return m
}

// activations walks a rank's ops and returns the most bytes of activations in memory at any moment: what is kept for microbatches
// in flight, what waits to go from one stage to another on this rank, and what the running layer needs beside.
func (p *paper) activations(r int) int64 {
	var held, most int64
	message := messageBytes(p.cfg, int64(p.float.Size()))
	if len(p.ranks) > 1 { // a message that its receiver has not taken yet
		held = message
	}
	here := func(stage int) bool { return stage >= 0 && stage < p.sched.Stages && p.sched.Place[stage] == r }
	for _, o := range p.sched.Ranks[r] {
		from, to := o.Stage-1, o.Stage+1
		if o.Kind == schedule.I || o.Kind == schedule.B {
			from, to = to, from
		}
		crosses := o.Kind == schedule.F || o.Kind == schedule.I || o.Kind == schedule.B
		if crosses && here(from) {
			held -= message // the op takes it over
		}
		if o.Kind != schedule.U {
			sum := &p.stages[o.Stage].sums[o.Kind]
			most = max(most, held+sum.peak)
			held += sum.after
		}
		if crosses && here(to) {
			held += message
		}
	}
	return most
}
