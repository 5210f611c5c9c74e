package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"triax/checkpoint"
	"triax/comm"
	"triax/tensor"
)

// saver is one rank's part of saving. One save is under way at a time; the next one waits for it.
type saver struct {
	k       *keeper
	dev     tensor.Device
	group   *comm.Group // all ranks, to agree on what follows a step; not in the ledger
	nonce   string      // of this run, the same on all ranks: names folders that are being written
	last    time.Time   // of the last save; rank 0's counts
	ctx     context.Context
	cancel  context.CancelFunc
	pending chan error        // of the save under way; nil without one
	blobs   []checkpoint.Blob // of the last save
}

// newSaver joins the group of all ranks, after a rank's other groups.
func (k *keeper) newSaver(ctx context.Context, dev tensor.Device, wire comm.Transport) (*saver, error) {
	ranks := make([]int, wire.Size())
	for i := range ranks {
		ranks[i] = i
	}
	group, err := comm.NewGroup(ctx, wire, "checkpoint", "checkpoint", ranks, nil)
	if err != nil {
		return nil, err
	}
	s := &saver{k: k, dev: dev, group: group, last: time.Now()}
	if k.dir != "" {
		if s.nonce, err = s.newNonce(ctx); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// newNonce is a number that rank 0 draws, told to all in parts that every float type has.
func (s *saver) newNonce(ctx context.Context) (string, error) {
	var parts [4]float64
	if s.group.Place() == 0 {
		for i := range parts {
			parts[i] = float64(rand.N(1 << 16))
		}
	}
	if err := s.max(ctx, parts[:]); err != nil {
		return "", err
	}
	text := ""
	for _, x := range parts {
		text += fmt.Sprintf("%04x", int(x))
	}
	return text, nil
}

// max replaces numbers, 0 or more, by the greatest of all ranks.
func (s *saver) max(ctx context.Context, numbers []float64) error {
	if s.group.Size() == 1 {
		return nil
	}
	t := s.dev.Heap().New(tensor.Workspace, tensor.F64, len(numbers))
	defer t.Release()
	s.dev.Upload(t, numbers)
	if err := s.group.AllReduce(ctx, t, comm.Max); err != nil {
		return err
	}
	s.dev.Download(numbers, t)
	return nil
}

type decision struct{ save, stop bool }

// decide says what follows a step. It is the same on all ranks: what depends on a signal or on the clock is agreed on.
func (s *saver) decide(ctx context.Context, step int) (d decision, err error) {
	k, c := s.k, s.k.cfg
	var asked [2]float64 // to stop, to save
	select {
	case <-k.stop:
		asked[0] = 1
	default:
	}
	timed := k.dir != "" && c.Minutes > 0
	if timed && s.group.Place() == 0 && time.Since(s.last) >= time.Duration(c.Minutes*float64(time.Minute)) {
		asked[1] = 1
	}
	if k.stop != nil || timed {
		if err := s.max(ctx, asked[:]); err != nil {
			return d, fmt.Errorf("whether to save: %w", err)
		}
	}
	d.stop = asked[0] > 0 && step < k.steps
	d.save = k.dir != "" && (d.stop || asked[1] > 0 || c.Last && step == k.steps || c.Every > 0 && step%c.Every == 0)
	if d.save {
		s.last = time.Now()
	}
	return d, nil
}

// grace is how long a rank that fails waits for the others to write their part of a save that is under way.
const grace = 5 * time.Second

// abandon ends the save under way where it can still be whole, and else leaves it to be swept.
func (s *saver) abandon() {
	defer s.cancel()
	defer time.AfterFunc(grace, s.cancel).Stop()
	_ = s.wait() // the step's failure is what is told
}

// save copies what the rank owns, and writes the copy while training goes on.
func (s *saver) save(w *Worker, step int) error {
	start := time.Now()
	if err := s.wait(); err != nil {
		return err
	}
	blobs, err := w.snapshot(s.blobs)
	if err != nil {
		return err
	}
	s.blobs = blobs
	meta := s.k.meta
	meta.Step, meta.States = step, w.opt.StateNames()
	rank, done := w.wire.Rank(), make(chan error, 1)
	out := Save{Step: step}
	for _, b := range blobs {
		out.Bytes += int64(len(b.Raw))
	}
	write := func() error {
		partial := checkpoint.Partial(s.k.dir, step, s.nonce)
		if err := checkpoint.WriteRank(partial, rank, blobs); err != nil {
			return err
		}
		if rank == 0 {
			var err error // training goes on and has its own
			if out.Path, err = checkpoint.Finish(s.ctx, s.k.dir, partial, s.k.mesh.Size(), meta); err != nil {
				return err
			}
			if err := checkpoint.Prune(s.k.dir, s.k.cfg.Keep); err != nil {
				return err
			}
		}
		out.WriteMS = ms(time.Since(start))
		return nil
	}
	s.pending = done
	go func() {
		err := write()
		if err != nil {
			err = fmt.Errorf("checkpoint of step %d: %w", step, err)
		} else {
			s.k.book(out)
		}
		done <- err
	}()
	if s.k.cfg.Synchronous {
		err = s.wait()
	}
	s.k.book(Save{Step: step, PauseMS: ms(time.Since(start))})
	return err
}

// wait ends the save under way.
func (s *saver) wait() error {
	if s.pending == nil {
		return nil
	}
	err := <-s.pending
	s.pending = nil
	return err
}

// failed tells of a save that has failed meanwhile.
func (s *saver) failed() error {
	select {
	case err := <-s.pending:
		s.pending = nil
		return err
	default:
		return nil
	}
}
