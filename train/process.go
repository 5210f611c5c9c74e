package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"triax/comm"
	"triax/configs"
	"triax/tensor"
)

// World is this process's place among processes of which each is one rank; comm/mpi has one.
type World interface {
	Rank() int
	Size() int
	Transport(heap *tensor.Heap) comm.Transport
	// Report sets what this rank answers to a roll call; RollCall asks others.
	Report(state func() string)
	RollCall(ranks []int, wait time.Duration) map[int]string
	// Stop tells all others that this rank has failed. Failed is closed when another has, and Cause is what it told.
	Stop(cause error)
	Failed() <-chan struct{}
	Cause() error
}

// DeviceWorld is a World whose transport carries the memory of the devices themselves, and what ranks say of a run beside it.
type DeviceWorld interface {
	World
	Host(heap *tensor.Heap) comm.Transport
}

// fits: a world has a process for every rank of the mesh.
func fits(cfg *configs.Config, w World) error {
	if w == nil || w.Size() == cfg.Mesh.World() {
		return nil
	}
	m := cfg.Mesh
	others := m.World() / m.DP
	hint := fmt.Sprintf("start %d processes", m.World())
	if w.Size()%others == 0 {
		hint += fmt.Sprintf(", or use mesh.dp = %d", w.Size()/others)
	}
	return configs.Problems{{
		Field: "mesh", Value: fmt.Sprintf("dp %d x pp %d x tp %d x ep %d x cp %d x dp_replicate %d", m.DP, m.PP, m.TP, m.EP, m.CP, m.Replicate),
		Rule: fmt.Sprintf("it has %d ranks, and the launcher started %d processes", m.World(), w.Size()), Hint: hint,
	}}
}

// process runs the one rank that this process is. The failure of another ends it, with that one's words.
func (r *run) process(ctx context.Context) error {
	w := r.opts.World
	if err := r.clearFlight(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-w.Failed():
			stop(w.Cause())
		case <-over:
		}
	}()
	rec := comm.NewRecorder(w.Rank())
	r.recorder = rec
	go r.asked(stop, over)
	w.Report(func() string {
		if s := rec.UnderWay(); s != "" {
			return s
		}
		return "computes"
	})
	open := func(heap *tensor.Heap) comm.Transport {
		wire := w.Transport(heap)
		if limit := r.plan.cfg.Train.Timeout; limit > 0 {
			wire = comm.Watched(wire, time.Duration(limit*float64(time.Second)), r.missing)
		}
		return wire
	}
	err := r.guarded(ctx, open, w.Rank())
	if err == nil {
		return nil
	}
	if told := w.Cause(); told != nil && errors.Is(err, told) {
		err = &remoteError{told}
	} else {
		err = &rankError{place: place(r.plan.mesh, w.Rank()), err: err}
	}
	return errors.Join(err, r.flight(err))
}

// remoteError is another rank's failure, come over the wire.
type remoteError struct{ err error }

func (e *remoteError) Error() string { return "stopped by " + e.err.Error() }
func (e *remoteError) Unwrap() error { return e.err }

// Remote tells whether a run ended because a rank in another process failed.
func Remote(err error) bool { return errors.As(err, new(*remoteError)) }

// answerWithin is how long a roll call waits. A process answers in milliseconds where it can.
const answerWithin = 3 * time.Second

// asked watches for the signal to stop. It may be a launcher's, that ends all since one is dead: then waiting for the end of the step is waiting for good,
// and there is little time to say what is known.
func (r *run) asked(stop context.CancelCauseFunc, over <-chan struct{}) {
	select {
	case <-r.opts.Stop:
	case <-over:
		return
	}
	w := r.opts.World
	var others []int
	for rank := range w.Size() {
		if rank != w.Rank() {
			others = append(others, rank)
		}
	}
	answers := w.RollCall(others, hurry)
	select {
	case <-over:
		return
	default:
	}
	var silent []string
	for _, rank := range others {
		if _, ok := answers[rank]; !ok {
			silent = append(silent, place(r.plan.mesh, rank))
		}
	}
	if len(silent) > 0 {
		during := r.recorder.UnderWay()
		if during == "" {
			during = "computing"
		}
		stop(fmt.Errorf("stopped by the launcher during %s: %s does not answer: killed, stopped or cut off", during, strings.Join(silent, " and ")))
	}
}

// hurry is how long a roll call waits when the launcher has begun to end all.
const hurry = 300 * time.Millisecond

// missing says what has become of ranks that a call waits for too long.
func (r *run) missing(ranks []int) string {
	answers := r.opts.World.RollCall(ranks, answerWithin)
	var silent, others []string
	for _, rank := range ranks {
		if says, ok := answers[rank]; ok {
			others = append(others, fmt.Sprintf("%s: %s", place(r.plan.mesh, rank), says))
		} else {
			silent = append(silent, place(r.plan.mesh, rank))
		}
	}
	if len(silent) > 0 {
		return strings.Join(silent, " and ") + " does not answer: killed, stopped or cut off"
	}
	return "all answer: " + strings.Join(others, "; ")
}
