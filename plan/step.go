package plan

import (
	"time"

	"triax/comm"
	"triax/mesh"
	"triax/nn"
	"triax/schedule"
	"triax/zero"
)

// Step is the time of one training step and where it goes. Shares are seconds of the pipeline rank that computes longest.
type Step struct {
	Seconds   float64 `json:"seconds"`
	Compute   float64 `json:"compute"`
	Tensor    float64 `json:"tensor"`    // exposed communication inside layers: tensor, context and expert axes
	Data      float64 `json:"data"`      // exposed communication of gradients and parameters
	Optimizer float64 `json:"optimizer"` // update, global norm, tied and shared sums
	Idle      float64 `json:"idle"`      // what is left: warm-up and drain, uneven stages, waiting for messages
	// Bubble is the idle share of the whole step over all pipeline ranks, barrier of norm and update included; DeviceBubble counts each rank
	// from its first op to its last.
	Bubble       float64 `json:"bubble"`
	DeviceBubble float64 `json:"device_bubble"`
	WarmUp       float64 `json:"warm_up"` // idle seconds by cause, mean over ranks
	Drain        float64 `json:"drain"`
	Peer         float64 `json:"peer"`
	Transfer     float64 `json:"transfer"`

	Timeline *schedule.Timeline `json:"-"`
}

// opCost is what an op of a stage takes.
type opCost struct {
	compute, tensor, data float64
	room                  float64 // seconds in which the data axes' link is free beside the computation
}

func (o opCost) seconds() float64 { return o.compute + o.tensor + o.data }

// clock prices the ops of a layout on a cluster.
type clock struct {
	*paper
	c     Cluster
	spans map[string]span
	costs []map[schedule.Kind]opCost // by virtual stage
}

func newClock(p *paper, c Cluster) *clock {
	k := &clock{paper: p, c: c, spans: map[string]span{}}
	for axis, axes := range map[string][]mesh.Axis{
		"tp": {mesh.TP}, "kv": {mesh.TP}, "cp": {mesh.CP}, "ep": {mesh.EP}, "dp": {mesh.DP, mesh.EP, mesh.CP},
		"dp_expert": {mesh.DP, mesh.CP}, "dp_replicate": {mesh.Replicate}, "tied": {mesh.PP},
		"data": {mesh.Replicate, mesh.DP, mesh.EP, mesh.CP}, "data_expert": {mesh.Replicate, mesh.DP, mesh.CP}, "world": mesh.DefaultOrder,
	} {
		k.spans[axis] = c.spanOf(p.mesh, axes...)
	}
	k.costs = make([]map[schedule.Kind]opCost, p.sched.Stages)
	for r, rk := range p.ranks {
		once := k.dataPerPass(r)
		for _, stage := range rk.stages {
			k.costs[stage] = map[schedule.Kind]opCost{}
			for _, kind := range []schedule.Kind{schedule.F, schedule.I, schedule.W, schedule.B} {
				var o opCost
				for _, l := range k.stages[stage].layers {
					pass := passOf(l, kind)
					issue := k.c.Host * float64(pass.Kernels)
					o.compute += max(pass.Compute, issue)
					for _, e := range pass.Comm {
						o.tensor += max(k.entry(e), k.c.Host*float64(e.Calls))
					}
				}
				whole := o.tensor
				o.tensor = k.exposedTensor(kind, whole, o.compute)
				o.room = k.room(kind, o.compute, whole-o.tensor)
				o.data = k.exposed(once[kind]/float64(len(rk.stages)), o.room)
				k.costs[stage][kind] = o
			}
		}
	}
	return k
}

// entry is the time of booked calls.
func (k *clock) entry(e comm.Entry) float64 {
	if e.Calls == 0 || e.Kind == comm.KindRecv {
		return 0
	}
	if e.Kind == comm.KindSend { // the ring of the context axis
		occupancy, latency := k.c.Message(float64(e.Bytes)/float64(e.Calls), k.mesh, mesh.CP)
		return float64(e.Calls) * (occupancy + latency)
	}
	return float64(e.Calls) * k.c.Collective(e.Kind, float64(e.Bytes)/float64(e.Calls), k.spans[e.Axis])
}

// line is the time of one kind of call on the data axes.
func (k *clock) line(l zero.Line, size float64) float64 {
	n := float64(l.Calls)
	if k.cfg.Zero.Stage == 3 {
		n *= float64(max(1, k.c.Pieces))
	}
	return n * k.c.Collective(l.Kind, float64(l.Elements)/n*size, k.spans[l.Axis])
}

// dataPerPass is the communication of ZeRO inside the pipeline, seconds by kind of op, for a rank's stages together: gathers before forward and
// backward at stage 3, reduce-scatters after weight gradients at stages 2 and 3.
func (k *clock) dataPerPass(r int) map[schedule.Kind]float64 {
	out := map[schedule.Kind]float64{}
	z := k.cfg.Zero
	if z.Stage < 2 {
		return out
	}
	m := float64(k.sched.Micros)
	for _, l := range k.ranks[r].lines {
		switch {
		case l.Kind == comm.KindAllGather && z.Stage == 3:
			t := k.line(l, float64(k.c.element())) / m
			if z.KeepAfterForward {
				out[schedule.F] += t
				continue
			}
			back := t / 2
			if k.c.Regather && k.cfg.Model.Recompute == nn.RecomputeFull {
				back = t
			}
			out[schedule.F] += t / 2
			out[schedule.I] += back
			out[schedule.B] += back
		case l.Kind == comm.KindReduceScatter:
			t := k.line(l, float64(k.c.GradientBytes)) / m
			out[schedule.W] += t
			out[schedule.B] += t
		}
	}
	return out
}

// reduction is the time of a rank's gradient sums after its last backward (ZeRO 0 and 1, and replicas).
func (k *clock) reduction(r int) float64 {
	total := 0.0
	for _, l := range k.ranks[r].lines {
		inside := k.cfg.Zero.Stage >= 2 && l.Kind == comm.KindReduceScatter
		if l.Kind != comm.KindAllGather && !inside {
			total += k.line(l, float64(k.c.GradientBytes))
		}
	}
	return total
}

// update is the time of a rank's U op: other axes' sums, the norm, the update, and parameters made whole.
func (k *clock) update(r int) float64 {
	layout := k.ranks[r].layout
	g, s := layout.gradients, layout.states
	size := float64(k.c.element())
	t := k.c.Pass(float64(g)*float64(k.c.GradientBytes)) + // the norm
		k.c.Pass(float64(s)*(2*float64(k.c.StateBytes)+float64(k.c.GradientBytes)+size))
	if k.cfg.Zero.Offload == zero.OffloadDisk { // read and written
		t += 2 * float64(s) * float64(k.c.StateBytes) / k.c.Disk
	}
	t += k.c.Collective(comm.KindAllReduce, 16, k.spans["world"])
	gather := 0.0
	if z := k.cfg.Zero.Stage; z == 1 || z == 2 {
		for _, l := range k.ranks[r].lines {
			if l.Kind == comm.KindAllGather {
				gather += k.line(l, size)
			}
		}
	}
	if k.c.GatherAhead { // layer by layer, before each layer's first forward
		first, layers := 0.0, 0
		for _, stage := range k.ranks[r].stages {
			first += k.costs[stage][schedule.F].compute
			layers += len(k.stages[stage].layers)
		}
		gather = max(gather/float64(max(1, layers)), gather-first)
	}
	t += gather
	spans, tied := layout.spans, layout.tied
	for span, l := range spans {
		axis := "tp"
		if span.Size > 0 {
			axis = "kv"
		}
		t += k.c.Collective(comm.KindAllReduce, float64(l.Elements)/float64(l.Calls)*float64(k.c.GradientBytes), k.spans[axis])
	}
	if tied.Calls > 0 {
		t += k.c.Collective(comm.KindAllReduce, float64(tied.Elements)/float64(tied.Calls)*float64(k.c.GradientBytes), k.spans["tied"])
	}
	return t
}

// duration turns seconds into the simulator's unit.
func duration(s float64) time.Duration { return time.Duration(s * 1e9) }

// step simulates the schedule with these prices.
func (k *clock) step() (Step, error) {
	n := len(k.ranks)
	reduce, update := make([]float64, n), make([]float64, n)
	for r := range k.ranks {
		reduce[r], update[r] = k.reduction(r), k.update(r)
	}
	occupancy, latency := k.message()
	took := make([][schedule.NumKinds]time.Duration, k.sched.Stages)
	for stage := range took {
		for kind, o := range k.costs[stage] {
			took[stage][kind] = duration(o.seconds())
		}
		took[stage][schedule.R] = duration(k.unhidden(stage, reduce[k.sched.Place[stage]]/float64(k.sched.Chunks())))
	}
	last := duration(maxOf(update))
	costs := schedule.Costs{
		Time: func(o schedule.Op) time.Duration {
			if o.Kind == schedule.U {
				return last
			}
			return took[o.Stage][o.Kind]
		},
		Move: func(schedule.Op, int, int) schedule.Transfer {
			return schedule.Transfer{Latency: duration(latency), Occupancy: duration(occupancy)}
		},
		Beside:  k.cfg.Zero.Overlap,
		Barrier: true,
	}
	t, err := k.planner.simulate(k.sched, costs)
	if err != nil {
		return Step{}, err
	}
	s := Step{Seconds: t.Makespan.Seconds(), Bubble: t.Bubble(), Timeline: t, Optimizer: maxOf(update)}
	busiest := 0
	for r := range k.ranks {
		if t.Busy(r) > t.Busy(busiest) {
			busiest = r
		}
		s.DeviceBubble += t.DeviceBubble(r) / float64(n)
		i := t.Causes(r)
		s.WarmUp += i.WarmUp.Seconds() / float64(n)
		s.Drain += i.Drain.Seconds() / float64(n)
		s.Peer += i.Peer.Seconds() / float64(n)
		s.Transfer += i.Transfer.Seconds() / float64(n)
	}
	for _, o := range k.sched.Ranks[busiest] {
		switch o.Kind {
		case schedule.R:
			if !k.cfg.Zero.Overlap {
				s.Data += reduce[busiest] / float64(k.sched.Chunks())
			}
		case schedule.U:
		default:
			c := k.costs[o.Stage][o.Kind]
			s.Compute, s.Tensor, s.Data = s.Compute+c.compute, s.Tensor+c.tensor, s.Data+c.data
		}
	}
	if shared := k.shared(t); shared > s.Seconds { // more ranks than cores
		s.Seconds = shared
	}
	s.Idle = s.Seconds - s.Compute - s.Tensor - s.Data - s.Optimizer
	return s, nil
}

// shared is the least time that the ranks' work takes on the cores there are.
func (k *clock) shared(t *schedule.Timeline) float64 {
	if k.c.Cores == 0 || k.mesh.Size() <= k.c.Cores {
		return 0
	}
	busy := 0.0
	for r := range k.ranks {
		busy += t.Busy(r).Seconds()
	}
	return busy * float64(k.mesh.Size()/len(k.ranks)) / float64(k.c.Cores)
}

func maxOf(list []float64) float64 {
	most := list[0]
	for _, x := range list[1:] {
		most = max(most, x)
	}
	return most
}
