package train

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/configs"
	"triax/cp"
	"triax/data"
	"triax/ep"
	"triax/mesh"
	"triax/nn"
	"triax/optim"
	"triax/pp"
	"triax/schedule"
	"triax/tensor"
	"triax/tp"
	"triax/zero"
)

// Worker is one rank: its device, its slice of the model, and its line of the schedule.
type Worker struct {
	cfg      *configs.Config
	mesh     mesh.Mesh
	coord    mesh.Coord
	dev      tensor.Device
	wire     comm.Transport
	host     comm.Transport // of this process's own memory: wire, where the device's is that
	hostHeap *tensor.Heap   // what host receives into
	ledger   *comm.Ledger
	recorder *comm.Recorder // of every call, with [train] verify or where ranks are processes
	groups   *groups
	kit      nn.Kit
	stream   *comm.Stream // of the tensor axis; nil without overlap
	part     part         // of every sample
	sched    *schedule.Schedule
	stages   map[int]*stage
	opt      *zero.Optimizer
	curve    optim.Curve

	step    int
	train   bool
	batches []*nn.Batch // of the step, by microbatch
	loss    float64     // this rank's share of the step's loss
	timings []pp.Timing // of the step
	cache   *nn.Cache   // of a continuation
	// tap, when set, takes the logits in place of the loss (sampling).
	tap func(logits *tensor.Tensor) error
}

// newWorker builds a rank. All ranks run it at once: it makes their groups. rec, where there is one, records all calls.
func newWorker(ctx context.Context, p *plan, dev tensor.Device, wire comm.Transport, ledger *comm.Ledger, rec *comm.Recorder) (*Worker, error) {
	w := &Worker{
		cfg: p.cfg, mesh: p.mesh, coord: p.mesh.Coord(wire.Rank()), dev: dev, wire: wire, ledger: ledger,
		sched: p.sched, stages: map[int]*stage{}, curve: optim.NewCurve(p.cfg.Optim, p.cfg.Train.Steps),
	}
	model := p.cfg.Model
	if rec == nil && p.cfg.Train.Verify {
		rec = comm.NewRecorder(wire.Rank())
	}
	w.host, w.hostHeap = wire, dev.Heap()
	if s, ok := wire.(interface {
		Inner() (comm.Transport, *tensor.Heap)
	}); ok {
		w.host, w.hostHeap = s.Inner()
	}
	if w.recorder = rec; rec != nil {
		w.host = comm.Recorded(w.host, rec)
		wire = comm.Recorded(wire, w.recorder)
		w.wire = wire
	}
	var err error
	if w.groups, err = openGroups(ctx, w.mesh, wire, ledger, p.tiedAcross(), p.kvCopies()); err != nil {
		return nil, err
	}
	w.part = part{rank: w.groups.cp.Place(), of: w.groups.cp.Size()}
	if p.cfg.Mesh.TPOverlap && w.groups.tp.Size() > 1 {
		w.stream = comm.NewStream()
	}
	w.kit = ep.Kit{Group: w.groups.ep, Kit: cp.Kit{
		Kit:   tp.Kit{Group: w.groups.tp, Sequence: p.cfg.Mesh.SequenceParallel && w.groups.tp.Size() > 1, Stream: w.stream},
		Group: w.groups.cp, Wire: wire, Ledger: ledger,
	}}
	mine := p.stagesOf(w.coord[mesh.PP])
	runs := make([][2]int, len(mine))
	for i, s := range mine {
		runs[i] = p.layers[s]
	}
	layers, err := nn.Build(model, w.kit, runs)
	if err != nil {
		return nil, err
	}
	if p.frozen {
		for _, list := range layers {
			nn.Freeze(list)
		}
	}
	var units []zero.Unit
	for i, s := range mine {
		st := &stage{id: s, layers: layers[i], unit: len(units), last: s == p.sched.Stages-1, saved: map[int][]nn.Saved{}, micros: p.cfg.Pipeline.Microbatches}
		st.call, st.tap = w.call, func() func(*tensor.Tensor) error { return w.tap }
		st.addUp = func(loss float64) {
			if w.groups.tp.Place() == 0 { // tensor peers all hold the same loss
				w.loss += loss
			}
		}
		w.stages[s] = st
		for _, l := range layers[i] {
			units = append(units, zero.Unit{Stage: s, Params: l.Params()})
		}
	}
	rule, err := optim.New(p.cfg.Optim)
	if err != nil {
		return nil, err
	}
	if w.opt, err = zero.New(p.cfg.Zero, dev, rule, w.groups.forZero(), units, p.weights); err != nil {
		return nil, err
	}
	w.opt.Check = p.cfg.Train.Verify
	for _, st := range w.stages {
		st.opt = w.opt
	}
	return w, nil
}

// call is the layer context of a microbatch.
func (w *Worker) call(ctx context.Context, micro int) *nn.Ctx {
	return &nn.Ctx{
		Context: ctx, Dev: w.dev, Batch: w.batches[micro], Train: w.train, Seed: w.cfg.Train.Seed, Step: w.step,
		AddLoss: func(x float64) { w.loss += x }, Cache: w.cache,
	}
}

// replica is this rank's place among the ranks that see different samples.
func (w *Worker) replica() int {
	return (w.coord[mesh.Replicate]*w.cfg.Mesh.DP+w.coord[mesh.DP])*w.cfg.Mesh.EP + w.coord[mesh.EP]
}

// Step trains on one global batch. The result is the same on all ranks.
func (w *Worker) Step(ctx context.Context, step int, batch data.Batch) (zero.Result, error) {
	w.step, w.train, w.loss = step, true, 0
	w.timings = w.timings[:0]
	var res zero.Result
	update := func(ctx context.Context) (err error) {
		res, err = w.opt.Step(ctx, zero.Update{
			Step: step, Rate: w.curve.At(step), Clip: w.cfg.Optim.Clip, Loss: w.loss,
		})
		return err
	}
	if err := w.walk(ctx, w.sched, batch, w.cfg.Pipeline.Microbatches, update); err != nil {
		return res, err
	}
	if w.cfg.Train.Verify {
		if err := w.opt.Verify(ctx); err != nil {
			return res, err
		}
		return res, w.sameSequences(ctx)
	}
	return res, nil
}

// Evaluate is the loss on one global batch, the same on all ranks. Weights, gradients and optimizer state stay as they are.
func (w *Worker) Evaluate(ctx context.Context, batch data.Batch) (float64, error) {
	w.train, w.loss = false, 0
	micros := w.cfg.Pipeline.Microbatches
	if err := w.walk(ctx, pp.ForwardOnly(w.sched, micros), batch, micros, nil); err != nil {
		return 0, err
	}
	return w.sum(ctx, w.loss)
}

func (w *Worker) sum(ctx context.Context, x float64) (float64, error) {
	t := w.dev.Heap().New(tensor.Workspace, tensor.F64, 1)
	defer t.Release()
	w.dev.Upload(t, []float64{x})
	if err := w.groups.world.AllReduce(ctx, t, comm.Sum); err != nil {
		return 0, err
	}
	var out [1]float64
	w.dev.Download(out[:], t)
	return out[0], nil
}

// walk loads this rank's microbatches and runs its line of a schedule over them.
func (w *Worker) walk(ctx context.Context, s *schedule.Schedule, batch data.Batch, micros int, update func(context.Context) error) error {
	parts := make([][]data.Sample, micros)
	for i := range parts {
		parts[i] = batch.Micro(w.replica(), w.cfg.Mesh.Replicas(), i, micros)
	}
	return w.walkBatches(ctx, s, parts, batch.Valid, update)
}

// walkBatches is walk over microbatches given sample by sample; valid counts the tokens that carry loss over all ranks.
func (w *Worker) walkBatches(ctx context.Context, s *schedule.Schedule, parts [][]data.Sample, valid int, update func(context.Context) error) error {
	scale := 1 / float64(max(1, valid))
	for _, samples := range parts {
		b := load(w.dev, samples, w.part, scale, w.cfg.Train.Batch)
		if w.cache != nil && w.cache.Len > 0 {
			places := make([]int32, b.Positions.Len())
			for i := range places {
				places[i] = int32(w.cache.Len)
			}
			w.dev.UploadI32(b.Positions, places)
		}
		w.batches = append(w.batches, b)
	}
	defer func() {
		for _, b := range w.batches {
			unload(b)
		}
		w.batches = w.batches[:0]
	}()
	lo, hi := w.kit.Rows(w.batches[0].Samples * w.batches[0].Seq)
	r := &pp.Runner{
		Schedule: s, Rank: w.coord[mesh.PP], World: w.mesh.Peers(w.wire.Rank(), mesh.PP), Stages: map[int]pp.Stage{},
		Update: update, Wire: w.wire, Ledger: w.ledger,
		Message: comm.Spec{Kind: tensor.Activations, DType: w.dev.Float(), Shape: []int{hi - lo, w.cfg.Model.Width}},
		OnOp:    func(t pp.Timing) { w.timings = append(w.timings, t) },
	}
	for id, st := range w.stages {
		r.Stages[id] = st
	}
	if err := r.Run(ctx); err != nil {
		for _, st := range w.stages {
			st.drop()
		}
		return err
	}
	return w.dev.Sync()
}

// Close gives the rank's memory back and stops its threads.
func (w *Worker) Close() {
	w.stream.Close()
	if w.opt != nil {
		w.opt.Close()
	}
	w.dev.Close()
}

// place names a rank in errors: "rank 5 (dp0 pp1 tp1)".
func place(m mesh.Mesh, rank int) string { return fmt.Sprintf("rank %d (%s)", rank, m.Place(rank)) }
