package plan

import (
	"context"
	"fmt"
	"strings"

	"triax/comm"
	"triax/configs"
	"triax/cp"
	"triax/ep"
	"triax/nn"
	"triax/tensor"
	"triax/tp"
)

// Pass is what one pass of a layer costs on one rank: forward, or a part of backward.
type Pass struct {
	Compute float64 // seconds of kernels
	FLOPs   float64
	Kernels int
	Comm    []comm.Entry // calls on the axes inside the layer
}

// Layer is a layer on paper.
type Layer struct {
	Name    string
	F, I, W Pass
	// B is both halves where the schedule runs them as one op.
	B       Pass
	Kept    int64 // bytes of activations from forward to backward
	Residue int64 // of those from the input's half to the weights'
	PeakF   int64 // beyond what is kept before the layer, while it runs forward
	PeakI   int64 // in the input's half of backward
	PeakB   int64 // in both halves at once
}

// bench calls layers on paper.
type bench struct {
	sheet  *Sheet
	ledger *comm.Ledger
	ctx    *nn.Ctx
	rows   int // token rows between layers
	width  int
}

// kitOf is one rank's kit, with groups of the configured sizes.
func kitOf(cfg *configs.Config, sheet *Sheet, ledger *comm.Ledger) (nn.Kit, error) {
	m := cfg.Mesh
	w := &wire{size: m.World(), heap: sheet.heap}
	group := func(axis string, n int) (*comm.Group, error) {
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i
		}
		return comm.NewGroup(context.Background(), w, axis, axis, ranks, ledger)
	}
	t, err := group("tp", m.TP)
	if err != nil {
		return nil, err
	}
	c, err := group("cp", m.CP)
	if err != nil {
		return nil, err
	}
	e, err := group("ep", m.EP)
	if err != nil {
		return nil, err
	}
	return ep.Kit{Group: e, Kit: cp.Kit{
		Kit:   tp.Kit{Group: t, Sequence: m.SequenceParallel && m.TP > 1},
		Group: c, Wire: w, Ledger: ledger,
	}}, nil
}

func newBench(cfg *configs.Config, kit nn.Kit, sheet *Sheet, ledger *comm.Ledger) *bench {
	samples := cfg.Train.Batch / (cfg.Mesh.Replicas() * max(1, cfg.Pipeline.Microbatches))
	seq := cfg.Model.Sequence / cfg.Mesh.CP
	T := samples * seq
	ids := func(n int) *tensor.Tensor { return sheet.heap.New(tensor.Inputs, tensor.I32, n) }
	b := &nn.Batch{
		Samples: samples, Seq: seq, SampleSeq: cfg.Model.Sequence, Scale: 1, SampleScale: 1,
		Tokens: ids(T), Targets: ids(T), Positions: ids(T), Index: ids(T), SampleIndex: ids(samples),
		RowSample: make([]int32, T),
	}
	lo, hi := kit.Rows(T)
	return &bench{
		sheet: sheet, ledger: ledger, rows: hi - lo, width: cfg.Model.Width,
		ctx: &nn.Ctx{Context: context.Background(), Dev: sheet, Batch: b, Train: true, Step: 1, Even: true},
	}
}

// measure calls one layer forward and backward. in is the shape of its input, nil for none.
func (b *bench) measure(l nn.Layer, in []int) (out Layer, shape []int, err error) {
	for _, p := range l.Params() {
		p.Data = b.sheet.New(tensor.Parameters, p.Local...)
		if !p.Frozen {
			p.Grad = tensor.NewAccum(b.sheet, tensor.Gradients, p.Local...)
		}
		defer func() { p.Data.Release(); p.Grad.Release(); p.Data, p.Grad = nil, nil }()
	}
	out.Name = l.Name()
	b.sheet.low = strings.HasPrefix(out.Name, "blocks.")
	var y *tensor.Tensor
	forward := func() (s nn.Saved, err error) {
		y, s, err = l.Forward(b.ctx, b.input(in))
		return s, err
	}
	var saved nn.Saved
	base := b.now()
	out.F, out.PeakF = b.pass(func() { saved, err = forward() })
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", l.Name(), err)
	}
	shape = y.Shape
	y.Release()
	out.Kept = b.now() - base
	grad := func() *tensor.Tensor {
		if y.DType != b.sheet.float {
			return nil // the loss
		}
		return b.input(shape)
	}
	var dx *tensor.Tensor
	out.I, out.PeakI = b.pass(func() { dx, err = l.BackwardInput(b.ctx, saved, grad()) })
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", l.Name(), err)
	}
	dx.Release()
	out.Residue = b.now() - base
	out.W, _ = b.pass(func() { err = l.BackwardWeight(b.ctx, saved) })
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", l.Name(), err)
	}
	if saved, err = forward(); err != nil {
		return out, nil, err
	}
	y.Release()
	out.B, out.PeakB = b.pass(func() { dx, err = nn.Backward(b.ctx, l, saved, grad()) })
	dx.Release()
	if err == nil && b.now() != base {
		err = fmt.Errorf("%d bytes never given back", b.now()-base)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.Name(), err)
	}
	return out, shape, err
}

func (b *bench) input(shape []int) *tensor.Tensor {
	if shape == nil {
		return nil
	}
	return b.sheet.New(tensor.Activations, shape...)
}

func (b *bench) now() int64 { return b.sheet.heap.Usage(tensor.Activations).Now }

// pass runs f and returns what it cost, and the most activations beyond those before it.
func (b *bench) pass(f func()) (Pass, int64) {
	s := b.sheet
	s.Seconds, s.FLOPs, s.Count = 0, 0, 0
	b.ledger.Reset()
	s.heap.ResetPeak()
	before := b.now()
	f()
	return Pass{Compute: s.Seconds, FLOPs: s.FLOPs, Kernels: s.Count, Comm: b.ledger.Entries()},
		s.heap.Usage(tensor.Activations).Peak - before
}

// layersOf measures every layer of the model, like ones once.
func layersOf(cfg *configs.Config, float tensor.DType, price Kernels) ([]Layer, error) {
	sheet, ledger := NewSheet(float, price), &comm.Ledger{}
	kit, err := kitOf(cfg, sheet, ledger)
	if err != nil {
		return nil, err
	}
	b := newBench(cfg, kit, sheet, ledger)
	model := cfg.Model
	blocks := 1 // of each kind
	if model.RecomputeLayers > 0 && model.Recompute != nn.RecomputeNone && model.RecomputeLayers < model.Layers {
		blocks = 2
	}
	small := model
	small.Layers = blocks
	if blocks == 2 {
		small.RecomputeLayers = 1
	} else if model.RecomputeLayers >= model.Layers {
		small.RecomputeLayers = 0
	}
	layers, err := nn.Build(small, kit, [][2]int{{0, nn.Count(small)}})
	if err != nil {
		return nil, err
	}
	var in []int
	var kinds []Layer
	for _, l := range layers[0] {
		var c Layer
		if c, in, err = b.measure(l, in); err != nil {
			return nil, err
		}
		kinds = append(kinds, c)
	}
	out := []Layer{kinds[0]}
	for i := range model.Layers {
		c := kinds[1]
		if blocks == 2 && i >= model.RecomputeLayers {
			c = kinds[2]
		}
		c.Name = fmt.Sprintf("blocks.%d", i)
		out = append(out, c)
	}
	return append(out, kinds[1+blocks:]...), nil
}
