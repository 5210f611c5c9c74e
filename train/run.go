package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"triax/checkpoint"
	"triax/comm"
	"triax/comm/local"
	"triax/comm/staged"
	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/hf"
	"triax/nn"
	"triax/pp"
	"triax/tensor"
)

// Options are the parts of a run that a configuration does not say.
type Options struct {
	// Corpus to train on; nil reads the one the configuration names.
	Corpus *data.Corpus
	// Open makes a rank's device; nil makes the CPU device that the configuration names.
	Open func(rank int) tensor.Device
	// World is this process's place where ranks are processes; nil makes all ranks goroutines of this one.
	World World
	// OnHost is how many processes share this host, where ranks are processes.
	OnHost int
	// Local changes the in-process transport, for tests.
	Local []local.Option
	// Weights to start from; nil makes fresh ones from train.seed.
	Weights nn.Source
	// Resume goes on from a checkpoint, under whatever mesh; nil starts at the first step. It is closed when all ranks have read it.
	Resume *checkpoint.Checkpoint
	// Stop, when closed, ends the run after the step under way, saved.
	Stop <-chan struct{}
	// Folder receives the run's files; "" writes none.
	Folder string
	// OnStep sees each step's outcome as it ends, on rank 0.
	OnStep func(Progress)
	// OnRank sees each rank's share of a step, in the rank's own goroutine.
	OnRank func(RankStep)
	// OnWorker sees every rank's worker before its first step (step 0) and after each, in the rank's own goroutine.
	OnWorker func(step int, w *Worker) error
}

// Progress is one step's outcome.
type Progress struct {
	Step, Steps int
	Loss, Norm  float64
	Rate        float64
	Skipped     bool
	Tokens      int
	Took        time.Duration
	Eval        *float64 // held-out loss, where this step was followed by an evaluation
}

// RankStep is one rank's share of a training step.
type RankStep struct {
	Rank, Step int
	Place      string // "dp0 pp1 tp1"
	Took       time.Duration
	Busy       time.Duration // in an op and not waiting for a peer
	Idle       time.Duration // waiting for a pipeline peer to make an input
	Transfer   time.Duration // moving inputs between pipeline ranks
	Comm       []comm.Entry  // of all training steps so far
	Memory     [tensor.NumKinds]tensor.Usage
}

// Run trains as the configuration says: every rank a goroutine of this process, or this process one rank of opts.World. When a rank fails, panics or
// ctx ends, all ranks stop, and the error names the rank that failed first.
func Run(ctx context.Context, cfg *configs.Config, opts Options) (*Result, error) {
	res, err := runAll(ctx, cfg, opts)
	if err != nil && opts.World != nil && !Remote(err) {
		opts.World.Stop(err)
	}
	return res, err
}

func runAll(ctx context.Context, cfg *configs.Config, opts Options) (*Result, error) {
	corpus := opts.Corpus
	if corpus == nil {
		var err error
		if corpus, err = data.Open(cfg.Data); err != nil {
			return nil, err
		}
	}
	if cfg.CPU.Multiply == "bf16" && opts.Open == nil && !cpu.HasBF16() {
		return nil, errors.New(`cpu.multiply = "bf16": this processor has no AVX512-BF16; use "float"`)
	}
	if err := openable(cfg, opts); err != nil {
		return nil, err
	}
	if err := fits(cfg, opts.World); err != nil {
		return nil, err
	}
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	closed, err := p.start(opts)
	if err != nil {
		return nil, err
	}
	defer closed()
	sum := fmt.Sprintf("%016x", corpus.Sum())
	start := 0
	if c := opts.Resume; c != nil {
		if err := resumable(c, p.cfg, sum); err != nil {
			return nil, err
		}
		p.weights, start = c.Resume(), c.Step
	}
	if err := p.knows(corpus.Tokenizer); err != nil {
		return nil, err
	}
	r := &run{plan: p, opts: opts, corpus: corpus, recs: newRecords(p), done: start}
	if r.set, err = corpus.Train(p.cfg.Model.Sequence, p.cfg.Train.Batch, p.cfg.Mesh.Replicas(), p.cfg.Train.Seed, p.cfg.Data.LastBatch); err != nil {
		return nil, err
	}
	if r.held, err = corpus.HeldOut(p.cfg.Model.Sequence, p.cfg.Train.Batch); err != nil {
		return nil, err
	}
	first := opts.World == nil || opts.World.Rank() == 0 // has the folder's files
	if opts.Folder != "" && first {
		if r.folder, err = openFolder(opts.Folder, p.cfg, opts.Resume); err != nil {
			return nil, err
		}
		defer r.folder.close()
	}
	if r.keep, err = newKeeper(p, opts.Folder, sum, opts.Stop); err != nil {
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	res := r.recs.result(p)
	res.Sample, res.Resumed, res.Saves = r.sample, start, r.keep.saves
	res.Stopped = r.stopped.Load()
	res.Folder = opts.Folder
	if r.folder != nil {
		if err := r.folder.finish(res, r.recs); err != nil {
			return res, err
		}
	}
	return res, nil
}

// openWeights maps the published model that training starts from, and checks that it is the configuration's.
func openWeights(cfg *configs.Config) (*hf.Weights, error) {
	w, err := hf.Open(cfg.Model.From)
	if err == nil {
		w.Fresh = nn.Seed(cfg.Train.Seed)
		if err = w.Fits(cfg.Model); err != nil {
			err = errors.Join(err, w.Close())
		}
	}
	if err != nil {
		return nil, configs.Problems{{Field: "model.from", Value: cfg.Model.From, Rule: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: "name a folder whose model has these sizes"}}
	}
	return w, nil
}

// knows says whether the model has a row for each of the tokenizer's ids.
func (p *plan) knows(tok data.Tokenizer) error {
	v := tok.Vocab()
	if v <= p.cfg.Model.Vocab {
		return nil
	}
	return configs.Problems{{
		Field: "model.vocab", Value: fmt.Sprint(p.cfg.Model.Vocab), Rule: fmt.Sprintf("the %s tokeniser has %d tokens", tok.Name(), v), Hint: fmt.Sprintf("use %d or more", v),
	}}
}

// start finds the weights to start from. closed ends their use.
func (p *plan) start(opts Options) (closed func() error, err error) {
	switch from := p.cfg.Model.From; {
	case opts.Weights != nil:
		p.weights = opts.Weights
	case from != "" && opts.Resume == nil:
		w, err := openWeights(p.cfg)
		if err != nil {
			return nil, err
		}
		p.weights = w
		return w.Close, nil
	}
	return func() error { return nil }, nil
}

// run is what the ranks of one process share: read-only but for the records, which have a slot a rank.
type run struct {
	plan     *plan
	opts     Options
	corpus   *data.Corpus
	set      *data.Set
	held     *data.Set // nil where nothing is held out
	recs     *records
	folder   *folder
	sample   string
	keep     *keeper
	reading  atomic.Int32                               // ranks that have not yet read their part of the checkpoint
	stopped  atomic.Bool                                // before its last step, as it was asked to
	recorder *comm.Recorder                             // of the rank that this process is, where ranks are processes
	done     int                                        // steps of the checkpoint that the run goes on from
	use      func(ctx context.Context, w *Worker) error // in place of training, where the model does not learn
}

func (r *run) start(ctx context.Context) error {
	if r.opts.World != nil {
		r.reading.Store(1)
		return r.process(ctx)
	}
	size := r.plan.mesh.Size()
	r.reading.Store(int32(size))
	world := local.New(size, r.opts.Local...)
	g, ctx := errgroup.WithContext(ctx)
	for rank := range size {
		g.Go(func() error {
			if err := r.guarded(ctx, func(heap *tensor.Heap) comm.Transport { return world.Rank(rank, heap) }, rank); err != nil {
				var stopped *rankError
				if errors.As(err, &stopped) { // another rank's failure, come through a wait
					return err
				}
				return &rankError{place: place(r.plan.mesh, rank), err: err}
			}
			return nil
		})
	}
	err := g.Wait()
	world.Close() // all ranks have stopped
	return err
}

// guarded turns a panic outside any op into an error.
func (r *run) guarded(ctx context.Context, open func(*tensor.Heap) comm.Transport, rank int) (err error) {
	defer pp.Recover(&err)
	return r.rank(ctx, open, rank)
}

// rankError marks the error of the rank that failed, so that ranks stopped by it do not wrap it again.
type rankError struct {
	place string
	err   error
}

func (e *rankError) Error() string { return e.place + ": " + e.err.Error() }
func (e *rankError) Unwrap() error { return e.err }

func (r *run) rank(ctx context.Context, open func(*tensor.Heap) comm.Transport, rank int) error {
	dev := r.device(rank)
	ledger := &comm.Ledger{}
	ledger.OnCall = r.recs.onCall(rank)
	wire := r.onDevice(dev, open)
	w, err := newWorker(ctx, r.plan, dev, wire, ledger, r.recorder)
	if err != nil {
		dev.Close()
		return fmt.Errorf("set-up: %w", err)
	}
	defer w.Close()
	if err := r.loaded(); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	if err := r.after(0, w); err != nil {
		return err
	}
	if r.use != nil {
		return r.use(ctx, w)
	}
	s, err := r.keep.newSaver(ctx, dev, w.wire)
	if err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	defer s.cancel()
	for step := r.done + 1; step <= r.plan.cfg.Train.Steps; step++ {
		if err := r.step(ctx, w, step); err != nil {
			s.abandon()
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := s.failed(); err != nil {
			return err
		}
		d, err := s.decide(ctx, step)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if d.save {
			if err := s.save(w, step); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if d.stop {
			r.stopped.Store(true)
			r.recs.close(w)
			return errors.Join(s.wait(), r.gather(ctx, w))
		}
	}
	if err := errors.Join(r.finish(ctx, w), s.wait()); err != nil {
		return err
	}
	return r.gather(ctx, w)
}

// openable: a device of NVIDIA's is the caller's to open.
func openable(cfg *configs.Config, opts Options) error {
	if cfg.Train.Device != configs.DeviceCUDA || opts.Open != nil {
		return nil
	}
	return configs.Problems{{Field: "train.device", Value: fmt.Sprintf("%q", cfg.Train.Device), Rule: "this program opens no NVIDIA device", Hint: "use triax train, or give Options.Open"}}
}

// onDevice is a rank's transport: of the device's memory, by way of the host where Go cannot read that and the world does not carry it.
func (r *run) onDevice(dev tensor.Device, open func(*tensor.Heap) comm.Transport) comm.Transport {
	if w, carries := r.opts.World.(DeviceWorld); carries {
		heap := tensor.NewHeap(nil, false)
		return &besideHost{open(dev.Heap()), w.Host(heap), heap}
	}
	if m, ok := dev.(staged.Memory); ok {
		return staged.New(m, open)
	}
	return open(dev.Heap())
}

// besideHost is a transport of devices' memory with one of host memory beside it.
type besideHost struct {
	comm.Transport
	host comm.Transport
	heap *tensor.Heap
}

// Inner is the transport of host memory, and the heap it receives into.
func (t *besideHost) Inner() (comm.Transport, *tensor.Heap) { return t.host, t.heap }

// loaded closes the checkpoint that the run goes on from when all ranks of this process have read their parts, so that its files can be removed.
func (r *run) loaded() error {
	if r.opts.Resume == nil || r.reading.Add(-1) > 0 {
		return nil
	}
	return r.opts.Resume.Close()
}

func (r *run) device(rank int) tensor.Device {
	if r.opts.Open != nil {
		return r.opts.Open(rank)
	}
	size := r.plan.mesh.Size() // of this process
	if r.opts.World != nil {
		size = max(1, r.opts.OnHost)
	}
	threads := r.plan.cfg.CPU.ThreadsPerRank
	if threads == 0 {
		threads = max(1, runtime.GOMAXPROCS(0)/size)
	}
	float := tensor.F32
	switch {
	case r.plan.cfg.Train.Device == "float64":
		float = tensor.F64
	case r.plan.cfg.Train.Precision == configs.PrecisionBF16:
		float = tensor.BF16
	}
	spin := threads*size <= runtime.GOMAXPROCS(0)
	if r.opts.World != nil { // what goes on beside computation, streams and the transport's thread, must not wait for its turn among busy goroutines
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+2))
	}
	return cpu.New(cpu.Options{Float: float, Threads: threads, Spin: spin, HugePages: true, BF16: r.plan.cfg.CPU.Multiply == "bf16"})
}

func (r *run) after(step int, w *Worker) error {
	if r.opts.OnWorker == nil {
		return nil
	}
	return r.opts.OnWorker(step, w)
}

func (r *run) step(ctx context.Context, w *Worker, step int) error {
	if err := ended(ctx); err != nil {
		return err
	}
	batch := r.set.Global(step)
	start := time.Now()
	res, err := w.Step(ctx, step, batch)
	if err != nil {
		return err
	}
	took := time.Since(start)
	r.recs.step(w, step, took)
	if r.opts.OnRank != nil {
		r.opts.OnRank(r.recs.rankStep(w, step))
	}
	if err := r.after(step, w); err != nil {
		return err
	}
	eval, err := r.evaluate(ctx, w, step)
	if err != nil {
		return fmt.Errorf("evaluation: %w", err)
	}
	if w.wire.Rank() != 0 {
		return nil
	}
	p := Progress{
		Step: step, Steps: r.plan.cfg.Train.Steps, Loss: res.Loss, Norm: res.Norm, Rate: w.curve.At(step),
		Skipped: res.Skipped, Tokens: len(batch.Samples) * r.plan.cfg.Model.Sequence, Took: took, Eval: eval,
	}
	r.recs.progress = append(r.recs.progress, p)
	if r.folder != nil {
		if err := r.folder.metric(p); err != nil {
			return err
		}
	}
	if r.opts.OnStep != nil {
		r.opts.OnStep(p)
	}
	return nil
}

// evaluate runs the held-out batches after the steps that the configuration asks for, and after the last.
func (r *run) evaluate(ctx context.Context, w *Worker, step int) (*float64, error) {
	t := r.plan.cfg.Train
	due := step == t.Steps || (t.EvalEvery > 0 && step%t.EvalEvery == 0)
	if r.held == nil || t.EvalBatches == 0 || !due {
		return nil, nil
	}
	r.recs.pause(w)
	defer r.recs.resume(w)
	sum, valid := 0.0, 0
	for i := 1; i <= min(t.EvalBatches, r.held.Steps()); i++ {
		b := r.held.Global(i)
		loss, err := w.Evaluate(ctx, b)
		if err != nil {
			return nil, err
		}
		sum, valid = sum+loss*float64(b.Valid), valid+b.Valid
	}
	mean := sum / float64(max(1, valid))
	return &mean, nil
}

// finish closes a rank's books, and continues the prompt when one is given.
func (r *run) finish(ctx context.Context, w *Worker) error {
	r.recs.close(w)
	if r.plan.cfg.Train.Sample == "" {
		return nil
	}
	text, err := r.generate(ctx, w)
	if w.wire.Rank() == 0 {
		r.sample = text
	}
	return err
}
