package plan

import (
	"triax/comm"
	"triax/configs"
	"triax/mesh"
	"triax/schedule"
	"triax/zero"
)

// rank is one pipeline rank on paper: its virtual stages, and its parameters' buckets.
type rank struct {
	stages []int
	layout *layout
	lines  []zero.Line // calls of one step of one data rank
}

// sizesOf are the sizes of the data axes' groups.
func sizesOf(m configs.MeshConfig) zero.Sizes {
	return zero.Sizes{
		Shards: m.DP * m.EP * m.CP, Replicas: m.Replicate, Data: m.DP * m.EP * m.CP * m.Replicate,
		ExpertShards: m.DP * m.CP, ExpertData: m.DP * m.CP * m.Replicate,
	}
}

// ranksOf lays the model out over the pipeline ranks of a schedule; runs are the flat layers of each virtual stage.
func (pl *Planner) ranksOf(cfg *configs.Config, s *schedule.Schedule, runs [][2]int) ([]rank, error) {
	out := make([]rank, len(s.Ranks))
	at := make([]int, s.Stages) // a stage's place among its rank's
	for stage, r := range s.Place {
		at[stage] = len(out[r].stages)
		out[r].stages = append(out[r].stages, stage)
	}
	for r := range out {
		mine := make([][2]int, 0, len(out[r].stages))
		for _, stage := range out[r].stages {
			mine = append(mine, runs[stage])
		}
		l, err := pl.layoutOf(cfg, mine)
		if err != nil {
			return nil, err
		}
		out[r].layout = l
		out[r].lines = l.Traffic(walk(s.Ranks[r], at))
	}
	return out, nil
}

// walk yields a rank's line as package zero sees it.
func walk(ops []schedule.Op, at []int) func(do func(zero.Pass, int)) {
	passes := [schedule.NumKinds]zero.Pass{schedule.F: zero.Forward, schedule.I: zero.Input, schedule.W: zero.Weight, schedule.B: zero.Both}
	return func(do func(zero.Pass, int)) {
		for _, o := range ops {
			if o.Kind != schedule.R && o.Kind != schedule.U {
				do(passes[o.Kind], at[o.Stage])
			}
		}
	}
}

// book is the calls of one step, summed over all ranks, as a run's ledger counts them.
type book struct {
	ledger comm.Ledger
}

func (t *book) add(axis string, kind comm.CallKind, group int, times, calls, bytes int64) {
	if calls == 0 || group == 1 {
		return
	}
	per := bytes / max(1, calls)
	t.ledger.Merge([]comm.Entry{{
		Axis: axis, Kind: kind, Calls: calls * times, Bytes: bytes * times,
		Wire: comm.Wire(kind, per, group) * float64(calls*times),
	}})
}

// traffic adds up a whole step. element is the bytes of a weight or activation, gradient those of an accumulated gradient.
func (p *paper) traffic(element, gradient int64) []comm.Entry {
	t := &book{}
	cfg, s, m := p.cfg, p.sched, p.cfg.Mesh
	side := int64(m.World() / m.PP) // ranks with the same pipeline coordinate
	for i, st := range p.stages {
		for kind, n := range p.ops[i] {
			for _, e := range st.sums[kind].comm {
				if n > 0 {
					t.ledger.Merge([]comm.Entry{times(e, side*n)})
				}
			}
		}
	}
	for _, rk := range p.ranks {
		for _, line := range rk.lines {
			size := gradient
			if line.Kind == comm.KindAllGather { // of weights
				size = element
			}
			t.add(line.Axis, line.Kind, line.Group, side, line.Calls, line.Elements*size)
		}
		spans, tied := rk.layout.spans, rk.layout.tied
		shards := int64(sizesOf(m).Shards)
		for span, line := range spans {
			axis, group := "tp", m.TP
			if span.Axis != mesh.TP || span.Size > 0 {
				axis, group = "kv", span.Size
			}
			t.add(axis, comm.KindAllReduce, group, side/shards, line.Calls, line.Elements*gradient)
		}
		t.add("tied", comm.KindAllReduce, 2, side/shards, tied.Calls, tied.Elements*gradient)
	}
	message := messageBytes(cfg, element)
	crossings := int64(0)
	for stage := 1; stage < s.Stages; stage++ {
		if s.Place[stage] != s.Place[stage-1] {
			crossings += 2 // forward and back
		}
	}
	for _, kind := range []comm.CallKind{comm.KindSend, comm.KindRecv} {
		n := crossings * int64(s.Micros)
		t.add("pp", kind, 2, side, n, n*message)
	}
	t.add("world", comm.KindAllReduce, m.World(), int64(m.World()), 1, 16) // sum of squares and loss, in float64
	return t.ledger.Entries()
}

// passOf is what an op makes a layer do.
func passOf(l Layer, k schedule.Kind) Pass {
	switch k {
	case schedule.F:
		return l.F
	case schedule.I:
		return l.I
	case schedule.W:
		return l.W
	case schedule.B:
		return l.B
	}
	return Pass{}
}

func times(e comm.Entry, n int64) comm.Entry {
	e.Calls *= n
	e.Bytes *= n
	e.Wire *= float64(n)
	return e
}

// messageBytes is the size of what crosses a boundary between stages.
func messageBytes(cfg *configs.Config, element int64) int64 {
	samples := cfg.Train.Batch / (cfg.Mesh.Replicas() * cfg.Pipeline.Microbatches)
	rows := samples * cfg.Model.Sequence / cfg.Mesh.CP
	if cfg.Mesh.SequenceParallel {
		rows /= cfg.Mesh.TP
	}
	return int64(rows) * int64(cfg.Model.Width) * element
}
