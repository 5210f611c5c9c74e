package train

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"triax/comm"
	"triax/mesh"
	"triax/pp"
	"triax/schedule"
	"triax/tensor"
)

// records are what a run measures. Each rank writes its own slot; they are read when all ranks are done.
type records struct {
	progress []Progress // written by rank 0
	slots    []*slot
	resident int64 // of other processes
}

// slot is one rank's measurements.
type slot struct {
	mu     sync.Mutex
	paused bool          // evaluation: not counted
	waited time.Duration // in collectives, since the step began
	steps  []span
	comm   []comm.Entry // of training steps
	memory Memory
	params int64
	ops    []pp.Timing // of the last traced steps
	calls  []comm.Call
}

// span is one rank's share of a step.
type span struct {
	start, end time.Time
	took       time.Duration
	busy       time.Duration // in an op and not waiting for a peer
	idle, move time.Duration // before ops: waiting for the input's maker, and for its transfer
}

// traced is the number of last steps whose ops and calls are kept for the timeline.
const traced = 3

func newRecords(p *plan) *records {
	r := &records{slots: make([]*slot, p.mesh.Size())}
	for i := range r.slots {
		r.slots[i] = &slot{}
	}
	return r
}

// onCall is the hook of a rank's ledger.
func (r *records) onCall(rank int) func(comm.Call) {
	s := r.slots[rank]
	return func(c comm.Call) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.paused {
			return
		}
		if c.Axis != "pp" {
			s.waited += c.Wait
		}
		s.calls = append(s.calls, c)
	}
}

// step books one training step of a rank.
func (r *records) step(w *Worker, step int, took time.Duration) {
	s := r.slots[w.wire.Rank()]
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := span{took: took, busy: -s.waited}
	for i, t := range w.timings {
		if begin := t.Start.Add(-t.Wait - t.Move); i == 0 {
			sp.start = begin
		}
		sp.end = t.End
		sp.busy += t.End.Sub(t.Start)
		sp.idle += t.Wait
		sp.move += t.Move
	}
	s.steps = append(s.steps, sp)
	s.waited = 0
	if step > w.cfg.Train.Steps-traced {
		s.ops = append(s.ops, w.timings...)
	} else {
		s.calls = s.calls[:0]
	}
	s.comm = w.ledger.Entries()
}

// rankStep is what the hook gets of the step that was booked last.
func (r *records) rankStep(w *Worker, step int) RankStep {
	s := r.slots[w.wire.Rank()]
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.steps[len(s.steps)-1]
	out := RankStep{
		Rank: w.wire.Rank(), Step: step, Place: w.mesh.Place(w.wire.Rank()), Took: sp.took, Busy: sp.busy, Idle: sp.idle, Transfer: sp.move,
		Comm: slices.Clone(s.comm),
	}
	for k := range out.Memory {
		out.Memory[k] = w.dev.Heap().Usage(tensor.Kind(k))
	}
	return out
}

// pause keeps evaluation out of the books: communication then is put back when it is over.
func (r *records) pause(w *Worker) {
	s := r.slots[w.wire.Rank()]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

func (r *records) resume(w *Worker) {
	s := r.slots[w.wire.Rank()]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
	w.ledger.Restore(s.comm)
}

// close takes a rank's memory peaks.
func (r *records) close(w *Worker) {
	h := w.dev.Heap()
	peak := func(k tensor.Kind) int64 { return h.Usage(k).Peak }
	s := r.slots[w.wire.Rank()]
	s.memory = Memory{
		Rank: w.wire.Rank(), Parameters: peak(tensor.Parameters), Gradients: peak(tensor.Gradients), Optimizer: peak(tensor.Optimizer),
		Activations: peak(tensor.Activations), Workspace: peak(tensor.Workspace), Buffers: peak(tensor.Buffers), Inputs: peak(tensor.Inputs),
		Peak: h.Total().Peak, Offloaded: w.opt.Offloaded(),
	}
	if w.coord[mesh.DP] == 0 && w.coord[mesh.Replicate] == 0 && w.coord[mesh.CP] == 0 {
		s.params = w.opt.Counted(w.coord[mesh.EP] == 0)
	}
}

// result adds the slots up.
func (r *records) result(p *plan) *Result {
	res := &Result{Mesh: p.mesh.String(), Ranks: p.mesh.Size(), Resident: resident() + r.resident}
	var times []time.Duration
	for _, pr := range r.progress {
		res.Loss, res.GradNorm = append(res.Loss, pr.Loss), append(res.GradNorm, pr.Norm)
		res.Tokens += int64(pr.Tokens)
		times = append(times, pr.Took)
		if pr.Skipped {
			res.Skipped = append(res.Skipped, pr.Step)
		}
		if pr.Eval != nil {
			res.Eval = append(res.Eval, Evaluation{pr.Step, *pr.Eval})
		}
	}
	if med := median(times); med > 0 {
		res.StepMS = ms(med)
		res.TokensPerS = float64(r.progress[0].Tokens) / med.Seconds()
	}
	var lists [][]comm.Entry
	for _, s := range r.slots {
		res.Memory = append(res.Memory, s.memory)
		res.Params += s.params
		lists = append(lists, s.comm)
	}
	res.Comm = perStep(lists, len(r.progress))
	res.Bubble.Measured = r.bubble(p)
	res.Bubble.Scheduled = scheduledIdle(p.sched)
	res.IdleMS, res.TransferMS = r.waits(p)
	return res
}

// perStep sums entries over ranks and divides by the number of steps; every step makes the same calls.
func perStep(lists [][]comm.Entry, steps int) []comm.Entry {
	sum := &comm.Ledger{}
	for _, l := range lists {
		sum.Merge(l)
	}
	out := sum.Entries()
	for i := range out {
		n := int64(max(1, steps))
		out[i].Calls /= n
		out[i].Bytes /= n
		out[i].Wire /= float64(n)
		out[i].Wait /= time.Duration(n)
		out[i].Move /= time.Duration(n)
	}
	return out
}

// bubble is the median over steps of the idle share of all pipeline lines.
func (r *records) bubble(p *plan) float64 {
	if p.mesh.Degree(mesh.PP) == 1 {
		return 0
	}
	var shares []float64
	for step := range r.slots[0].steps {
		busy, whole := 0.0, 0.0
		for _, line := range p.mesh.Groups(mesh.PP) {
			first, last := r.slots[line[0]].steps[step].start, time.Time{}
			for _, rank := range line {
				s := r.slots[rank].steps[step]
				if s.start.Before(first) {
					first = s.start
				}
				if s.end.After(last) {
					last = s.end
				}
				busy += s.busy.Seconds()
			}
			whole += last.Sub(first).Seconds() * float64(len(line))
		}
		shares = append(shares, 1-busy/whole)
	}
	return median(shares)
}

// waits is the mean idle and transfer time of a step, by pipeline rank.
func (r *records) waits(p *plan) (idle, move []float64) {
	n := p.mesh.Degree(mesh.PP)
	idle, move = make([]float64, n), make([]float64, n)
	counts := make([]int, n)
	for rank, s := range r.slots {
		stage := p.mesh.Coord(rank)[mesh.PP]
		for _, sp := range s.steps {
			idle[stage] += ms(sp.idle)
			move[stage] += ms(sp.move)
			counts[stage]++
		}
	}
	for i, c := range counts {
		idle[i] /= float64(max(1, c))
		move[i] /= float64(max(1, c))
	}
	return idle, move
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median[T float64 | time.Duration](list []T) T {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}

// scheduledIdle is the schedule's own bubble: forward one unit, input and weight gradient one each, a barrier at the end.
func scheduledIdle(s *schedule.Schedule) float64 {
	costs := schedule.Uniform(time.Millisecond, time.Millisecond, time.Millisecond)
	costs.Barrier = true
	t, err := schedule.Simulate(s, costs)
	if err != nil {
		panic(fmt.Sprintf("train: a verified schedule does not run: %v", err))
	}
	return t.Bubble()
}
