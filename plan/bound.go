package plan

import (
	"triax/configs"
	"triax/mesh"
	"triax/nn"
	"triax/schedule"
	"triax/zero"
)

// Bounds are closed formulas for what layouts of one model and batch take and hold at least: no schedule is run, no bucket laid out. A search prices only those
// that may still be among the best. For one goroutine.
type Bounds struct {
	pl     *Planner
	base   *configs.Config
	groups map[boundGroup][]Layer
	cuts   map[boundCut][][2]int
	peaks  map[*schedule.Schedule][]int // microbatches of a chunk in flight, by rank
	sum    map[boundGroup]*[3][schedule.NumKinds]float64
}

// boundGroup is what layouts share whose layers cost the same.
type boundGroup struct {
	tp, cp, ep, micro int
	sequence          bool
	recompute         string
}

type boundCut struct {
	stages             int
	balance, recompute string
}

// NewBounds makes closed formulas for layouts of a model and batch on a cluster.
func NewBounds(base *configs.Config, c Cluster, s *Schedules) *Bounds {
	return &Bounds{
		pl: NewPlanner(c, s), base: base, groups: map[boundGroup][]Layer{}, cuts: map[boundCut][][2]int{},
		peaks: map[*schedule.Schedule][]int{}, sum: map[boundGroup]*[3][schedule.NumKinds]float64{},
	}
}

// Of is the least time of a step and the least bytes of the fullest rank. cfg is a validated, resolved layout of the model.
//
// A rank cannot start before the first microbatch has passed the stages before its first, nor end before the last one's input gradients have passed them
// back; between the two it runs all its ops. Every layer is at least as dear as the cheapest of its kind, and what data ranks send is free.
func (b *Bounds) Of(cfg *configs.Config) (seconds, bytes float64, err error) {
	m := cfg.Mesh
	g := boundGroup{m.TP, m.CP, m.EP, cfg.Train.Batch / (m.Replicas() * cfg.Pipeline.Microbatches), m.SequenceParallel, cfg.Model.Recompute}
	layers, err := b.layers(cfg, g)
	if err != nil {
		return 0, 0, err
	}
	s, err := b.pl.schedules.of(cfg)
	if err != nil {
		return 0, 0, err
	}
	cut := boundCut{s.Stages, cfg.Pipeline.Balance, cfg.Model.Recompute}
	runs := b.cuts[cut]
	if runs == nil {
		if runs, err = configs.Runs(cfg, s.Stages); err != nil {
			return 0, 0, err
		}
		b.cuts[cut] = runs
	}
	return b.time(cfg, s, runs, b.costs(cfg, g, layers)), b.memory(cfg, s, runs, layers), nil
}

func (b *Bounds) layers(cfg *configs.Config, g boundGroup) ([]Layer, error) {
	if l := b.groups[g]; l != nil {
		return l, nil
	}
	l, err := b.pl.layersOf(cfg)
	if err == nil {
		b.groups[g] = l
	}
	return l, err
}

// costs are seconds by kind of op of the embedding, a block and the head together with what follows the blocks.
func (b *Bounds) costs(cfg *configs.Config, g boundGroup, layers []Layer) *[3][schedule.NumKinds]float64 {
	key := g
	if c := b.sum[key]; c != nil {
		return c
	}
	out := new([3][schedule.NumKinds]float64)
	n := cfg.Model.Layers
	for _, kind := range []schedule.Kind{schedule.F, schedule.I, schedule.W, schedule.B} {
		cost := func(l Layer) float64 {
			pass := passOf(l, kind)
			return max(pass.Compute, b.pl.c.Host*float64(pass.Kernels))
		}
		out[0][kind] = cost(layers[0])
		out[1][kind] = min(cost(layers[1]), cost(layers[n])) // blocks that make their activations again, and blocks that do not
		for _, l := range layers[1+n:] {
			out[2][kind] += cost(l)
		}
	}
	b.sum[key] = out
	return out
}

// time is the bound on a step.
func (b *Bounds) time(cfg *configs.Config, s *schedule.Schedule, runs [][2]int, costs *[3][schedule.NumKinds]float64) float64 {
	of := func(stage int, kind schedule.Kind) float64 {
		lo, hi := runs[stage][0], runs[stage][1]
		blocks, t := hi-lo, 0.0
		if lo == 0 {
			blocks, t = blocks-1, costs[0][kind]
		}
		if past := hi - 1 - cfg.Model.Layers; past > 0 {
			blocks, t = blocks-past, t+costs[2][kind]
		}
		return t + float64(blocks)*costs[1][kind]
	}
	micros := float64(cfg.Pipeline.Microbatches)
	split := splits(s)
	p := len(s.Ranks)
	busy, later, first := make([]float64, p), make([]float64, p), make([]int, p)
	for r := range first {
		first[r] = -1
	}
	before, back, most := 0.0, 0.0, 0.0
	head, tail := make([]float64, p), make([]float64, p)
	for stage, r := range s.Place {
		if first[r] < 0 {
			first[r], head[r], tail[r] = stage, before, back
		}
		before += of(stage, schedule.F)
		if split {
			back += of(stage, schedule.I)
			busy[r] += micros * (of(stage, schedule.F) + of(stage, schedule.I))
			later[r] += micros * of(stage, schedule.W)
		} else {
			back += of(stage, schedule.B)
			busy[r] += micros * (of(stage, schedule.F) + of(stage, schedule.B))
		}
	}
	for r := range p {
		most = max(most, head[r]+busy[r]+max(tail[r], later[r]))
	}
	return most
}

// splits says whether a schedule runs the halves of backward as two ops.
func splits(s *schedule.Schedule) bool {
	for _, o := range s.Ranks[0] {
		if o.Kind == schedule.I || o.Kind == schedule.W {
			return true
		}
	}
	return false
}

// memory is the bound on the fullest rank: matrices of its blocks spread evenly, and what its microbatches in flight keep.
func (b *Bounds) memory(cfg *configs.Config, s *schedule.Schedule, runs [][2]int, layers []Layer) float64 {
	c := b.pl.c
	peaks := b.peaks[s]
	if peaks == nil {
		peaks = schedule.InFlight(s)
		b.peaks[s] = peaks
	}
	n := cfg.Model.Layers
	kept := float64(min(layers[1].Kept, layers[n].Kept))
	if splits(s) { // after the input's half less is kept
		kept = min(kept, float64(min(layers[1].Residue, layers[n].Residue)))
	}
	if c.Runtime != "" { // whose layers keep something else
		kept = 0
	}
	least := make([]float64, len(s.Ranks))
	all := make([]float64, len(s.Ranks))
	for stage, r := range s.Place {
		lo, hi := max(1, runs[stage][0]), min(n+1, runs[stage][1])
		blocks := float64(max(0, hi-lo))
		if all[r] == 0 || blocks < least[r] {
			least[r] = blocks
		}
		all[r] += blocks
	}
	most, each := 0.0, blockStates(cfg, c)
	for r := range all {
		most = max(most, all[r]*each+float64(peaks[r])*least[r]*kept)
	}
	return most * (1 + c.Slack)
}

// blockStates is a bound from below on what a block's weights, gradients and states are on any rank that has it: its matrices, spread evenly.
func blockStates(r *configs.Config, c Cluster) float64 {
	n, _ := nn.MACs(nn.Config{ // matrices only: with no sequence there are no scores
		Width: r.Model.Width, Hidden: r.Model.Hidden, Heads: r.Model.Heads, KVHeads: r.Model.KVHeads, HeadDim: r.Model.HeadDim, Family: r.Model.Family,
	})
	n /= float64(r.Mesh.TP)
	d := float64(r.Mesh.DP * r.Mesh.CP * r.Mesh.EP)
	w, g, s := float64(c.element()), float64(c.GradientBytes), float64(c.StateBytes)
	if r.Model.LoRARank > 0 { // only adapters learn
		g, s = 0, 0
	}
	if r.Zero.Offload == zero.OffloadDisk {
		s = 0
	}
	switch r.Zero.Stage {
	case 1:
		s /= d
	case 2:
		g, s = g/d, s/d
	case 3:
		w, g, s = w/d, g/d, s/d
	}
	return n * (w + g + s)
}

// orders are the orders of axes worth a price: tensor peers next to each other always, then either data or pipeline peers.
func orders(m configs.MeshConfig) [][]string {
	out := [][]string{nil}
	if m.PP > 1 && m.DP*m.Replicate > 1 {
		out = append(out, []string{mesh.Replicate.String(), mesh.DP.String(), mesh.PP.String(), mesh.EP.String(), mesh.CP.String(), mesh.TP.String()})
	}
	return out
}
