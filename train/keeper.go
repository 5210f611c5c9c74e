package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"triax/checkpoint"
	"triax/configs"
	"triax/mesh"
)

// keeper decides when a run is saved and when it ends before its last step. The ranks of a process share it: the first to end a step
// decides for all, so that all do the same.
type keeper struct {
	cfg   configs.CheckpointConfig
	dir   string // of the checkpoints; "" keeps none
	meta  checkpoint.Meta
	mesh  mesh.Mesh
	steps int
	nonce string
	stop  <-chan struct{}

	mu      sync.Mutex
	decided map[int]decision
	last    time.Time // of the last save
	saves   []Save
}

type decision struct{ save, stop bool }

// Save is one checkpoint of a run.
type Save struct {
	Step    int     `json:"step"`
	Path    string  `json:"path"`
	Bytes   int64   `json:"bytes"`
	PauseMS float64 `json:"pause_ms"` // that training waited, on the rank that waited longest: for its copy, and for the save before
	WriteMS float64 `json:"write_ms"` // until everything was synced and named, from the end of the step
}

func newKeeper(p *plan, folder, corpus string, stop <-chan struct{}) (*keeper, error) {
	k := &keeper{
		cfg: p.cfg.Checkpoint, mesh: p.mesh, steps: p.cfg.Train.Steps, nonce: fmt.Sprintf("%016x", rand.Uint64()), stop: stop,
		decided: map[int]decision{}, last: time.Now(),
	}
	if folder == "" || !k.cfg.Last && k.cfg.Every == 0 && k.cfg.Minutes == 0 {
		return k, nil
	}
	text, err := p.cfg.TOML()
	if err != nil {
		return nil, err
	}
	k.dir = filepath.Join(folder, checkpointFolder)
	k.meta = checkpoint.Meta{Config: string(text), Mesh: p.mesh.String(), Corpus: corpus, Batch: p.cfg.Train.Batch}
	return k, checkpoint.Sweep(k.dir)
}

// checkpointFolder is where in a run's folder its checkpoints are.
const checkpointFolder = "checkpoints"

// decide says what follows a step. Its answer for a step never changes.
func (k *keeper) decide(step int) decision {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.decided[step]
	if ok {
		return d
	}
	select {
	case <-k.stop:
		d.stop = step < k.steps
	default:
	}
	if k.dir != "" {
		c := k.cfg
		d.save = d.stop || c.Last && step == k.steps || c.Every > 0 && step%c.Every == 0 ||
			c.Minutes > 0 && time.Since(k.last) >= time.Duration(c.Minutes*float64(time.Minute))
	}
	if d.save {
		k.last = time.Now()
	}
	k.decided[step] = d
	delete(k.decided, step-2) // no rank is two steps behind: each step ends in a sum over all
	return d
}

// book adds one rank's save to the list.
func (k *keeper) book(s Save) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.saves {
		if old := &k.saves[i]; old.Step == s.Step {
			old.Bytes += s.Bytes
			old.PauseMS, old.WriteMS = max(old.PauseMS, s.PauseMS), max(old.WriteMS, s.WriteMS)
			old.Path = max(old.Path, s.Path)
			return
		}
	}
	k.saves = append(k.saves, s)
}

// saver is one rank's part of saving. One save is under way at a time; the next one waits for it.
type saver struct {
	k       *keeper
	ctx     context.Context
	cancel  context.CancelFunc
	pending chan error        // of the save under way; nil without one
	blobs   []checkpoint.Blob // of the last save
}

func (k *keeper) newSaver(ctx context.Context) *saver {
	s := &saver{k: k}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
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
		partial := checkpoint.Partial(s.k.dir, step, s.k.nonce)
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

// resumable: a checkpoint belongs to this run as far as its results depend on it.
func resumable(c *checkpoint.Checkpoint, cfg *configs.Config, corpus string) error {
	was, err := configs.Parse([]byte(c.Config), nil)
	if err != nil {
		return fmt.Errorf("%s: its configuration: %w", c.Dir, err)
	}
	var ps configs.Problems
	same := func(field string, now, then any) {
		if now != then {
			ps = append(ps, configs.Problem{Field: field, Value: fmt.Sprint(now), Rule: "the run that is resumed has another, and goes on with other data", Hint: fmt.Sprintf("use %v", then)})
		}
	}
	same("train.seed", cfg.Train.Seed, was.Train.Seed)
	same("train.batch", cfg.Train.Batch, was.Train.Batch)
	same("model.sequence", cfg.Model.Sequence, was.Model.Sequence)
	same("data.last_batch", cfg.Data.LastBatch, was.Data.LastBatch)
	same("optim.rule", cfg.Optim.Rule, was.Optim.Rule)
	if c.Corpus != corpus {
		ps = append(ps, configs.Problem{Field: "data.source", Value: fmt.Sprint(cfg.Data.Source), Rule: "its tokens are not those that the run was trained on", Hint: "use the same files"})
	}
	if c.Step >= cfg.Train.Steps {
		ps = append(ps, configs.Problem{Field: "train.steps", Value: fmt.Sprint(cfg.Train.Steps), Rule: fmt.Sprintf("the checkpoint has done %d", c.Step), Hint: fmt.Sprintf("use more, for example %d", 2*c.Step)})
	}
	if len(ps) > 0 {
		return ps
	}
	return nil
}
