package pp

import (
	"context"
	"fmt"
	"time"

	"triax/comm"
	"triax/schedule"
	"triax/tensor"
)

// source is the stage whose output an op takes as its input tensor, and whether it takes one at all.
func (r *Runner) source(op schedule.Op) (stage int, tag uint8, ok bool) {
	switch op.Kind {
	case schedule.F:
		return op.Stage - 1, comm.TagForward, op.Stage > 0
	case schedule.I, schedule.B:
		return op.Stage + 1, comm.TagBackward, op.Stage < r.Schedule.Stages-1
	}
	return 0, 0, false
}

// input is the tensor that an op works on: from another rank, from this rank, or none.
func (r *Runner) input(ctx context.Context, op schedule.Op) (*tensor.Tensor, comm.Times, error) {
	stage, tag, ok := r.source(op)
	if !ok {
		return nil, comm.Times{}, nil
	}
	from := r.Schedule.Place[stage]
	if from == r.Rank {
		key := slotOf(tag, op.Stage, op.Micro)
		t, ok := r.arrived[key]
		if !ok {
			panic(fmt.Sprintf("pp: %v runs before stage %d made its input; the schedule was not verified", op, stage))
		}
		delete(r.arrived, key)
		return t, comm.Times{}, nil
	}
	begin := time.Now()
	t, times, err := r.Wire.Recv(ctx, r.World[from], comm.Tag{Kind: tag, Stage: op.Stage, Micro: op.Micro}, r.Message)
	if err != nil {
		return nil, times, fmt.Errorf("recv from rank %d: %w", r.World[from], err)
	}
	r.Ledger.Add(comm.Call{Axis: "pp", Kind: comm.KindRecv, Bytes: t.Bytes(), Group: 2, Start: begin, Times: times})
	return t, times, nil
}

// output hands an op's result to the stage that needs it.
func (r *Runner) output(ctx context.Context, op schedule.Op, out *tensor.Tensor) error {
	var stage int
	var tag uint8
	switch op.Kind {
	case schedule.F:
		stage, tag = op.Stage+1, comm.TagForward
	case schedule.I, schedule.B:
		stage, tag = op.Stage-1, comm.TagBackward
	default:
		return nil
	}
	if stage < 0 || stage == r.Schedule.Stages {
		return nil
	}
	to := r.Schedule.Place[stage]
	if to == r.Rank {
		r.arrived[slotOf(tag, stage, op.Micro)] = out
		return nil
	}
	bytes := out.Bytes()
	begin := time.Now()
	// The transport owns the memory until the send is done; this rank must not touch it again.
	r.sends = append(r.sends, r.Wire.Send(ctx, r.World[to], comm.Tag{Kind: tag, Stage: stage, Micro: op.Micro}, out))
	r.Ledger.Add(comm.Call{Axis: "pp", Kind: comm.KindSend, Bytes: bytes, Group: 2, Start: begin})
	return nil
}

// slotOf names a tensor passed between two stages of one rank, by the op that will take it.
func slotOf(tag uint8, stage, micro int) schedule.Op {
	if tag == comm.TagForward {
		return schedule.Op{Stage: stage, Kind: schedule.F, Micro: micro}
	}
	return schedule.Op{Stage: stage, Kind: schedule.I, Micro: micro}
}
