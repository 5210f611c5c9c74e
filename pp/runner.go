package pp

import (
	"context"
	"fmt"
	"time"

	"triax/comm"
	"triax/schedule"
	"triax/tensor"
)

// Runner walks one pipeline rank's ops of a schedule.
type Runner struct {
	Schedule *schedule.Schedule
	Rank     int                             // pipeline rank
	World    []int                           // World[r] is the world rank of pipeline rank r on this line
	Stages   map[int]Stage                   // by virtual stage, those that Place gives this rank
	Update   func(ctx context.Context) error // the U op
	Message  comm.Spec                       // what crosses a boundary: type and shape of activations
	Wire     comm.Transport
	Ledger   *comm.Ledger
	// OnOp, when set, sees every op as it ends, and how long its input took to come.
	OnOp func(Timing)

	arrived map[schedule.Op]*tensor.Tensor // outputs waiting for an op on this same rank
	sends   []*comm.Pending
}

// Timing is one op on the clock of its rank. Before Start the rank was waiting for the peer that makes the input (Wait)
// and then for the transfer (Move); both are zero where nothing had to come.
type Timing struct {
	Op         schedule.Op
	Start, End time.Time
	Wait, Move time.Duration
}

// Run walks the whole line once: a training step, or an evaluation where the schedule has only F.
func (r *Runner) Run(ctx context.Context) (err error) {
	r.arrived = map[schedule.Op]*tensor.Tensor{}
	r.sends = r.sends[:0]
	defer func() {
		if err != nil {
			r.drop()
		}
	}()
	for _, op := range r.Schedule.Ranks[r.Rank] {
		if op.Kind == schedule.U {
			// What was sent is out of this rank's hands before the weights change.
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		if err := r.do(ctx, op); err != nil {
			return fmt.Errorf("%v: %w", op, err)
		}
	}
	return r.flush(ctx)
}

func (r *Runner) do(ctx context.Context, op schedule.Op) error {
	in, times, err := r.input(ctx, op)
	if err != nil {
		return err
	}
	start := time.Now()
	out, err := r.compute(ctx, op, in)
	if err != nil {
		return err
	}
	if r.OnOp != nil {
		r.OnOp(Timing{Op: op, Start: start, End: time.Now(), Wait: times.Wait, Move: times.Move})
	}
	return r.output(ctx, op, out)
}

func (r *Runner) compute(ctx context.Context, op schedule.Op, in *tensor.Tensor) (out *tensor.Tensor, err error) {
	defer Recover(&err)
	if op.Kind == schedule.U {
		return nil, r.Update(ctx)
	}
	s := r.Stages[op.Stage]
	switch op.Kind {
	case schedule.F:
		return s.Forward(ctx, op.Micro, in)
	case schedule.I:
		return s.BackwardInput(ctx, op.Micro, in)
	case schedule.B:
		return s.Backward(ctx, op.Micro, in)
	case schedule.W:
		return nil, s.BackwardWeight(ctx, op.Micro)
	case schedule.R:
		return nil, s.Reduce(ctx)
	}
	return nil, fmt.Errorf("op of unknown kind %d", op.Kind)
}

func (r *Runner) flush(ctx context.Context) error {
	for _, p := range r.sends {
		if _, err := p.Wait(ctx); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	r.sends = r.sends[:0]
	return nil
}

// drop gives back what was waiting when a step failed.
func (r *Runner) drop() {
	for k, t := range r.arrived {
		t.Release()
		delete(r.arrived, k)
	}
}
