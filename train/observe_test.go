package train

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"triax/comm/local"
	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// observer writes down what all ranks of a run do, in logical coordinates. Where several ranks hold the same element,
// they must agree bit by bit.
type observer struct {
	mu       sync.Mutex
	h        *history
	disagree []string
}

func newObserver(steps int) *observer {
	o := &observer{h: &history{weights: values{}, states: map[string]values{}}}
	for range steps {
		o.h.grads = append(o.h.grads, values{})
	}
	return o
}

// attach is the OnWorker hook.
func (o *observer) attach(step int, w *Worker) error {
	if step == 0 {
		w.opt.Observe = func(p *nn.Param, lo int, grad *tensor.Tensor) {
			o.put(o.h.grads[w.step-1], "gradient", w, p, lo, grad)
		}
		return nil
	}
	if step < w.cfg.Train.Steps {
		return nil
	}
	names := w.opt.StateNames()
	for piece := range w.opt.Each {
		o.put(o.h.weights, "weight", w, piece.Param, piece.Lo, piece.Weight)
		for i, s := range piece.State {
			o.mu.Lock()
			if o.h.states[names[i]] == nil {
				o.h.states[names[i]] = values{}
			}
			to := o.h.states[names[i]]
			o.mu.Unlock()
			o.put(to, names[i], w, piece.Param, piece.Lo, s)
		}
	}
	return nil
}

func (o *observer) put(to values, what string, w *Worker, p *nn.Param, lo int, x *tensor.Tensor) {
	v := download(w.dev, x)
	o.mu.Lock()
	defer o.mu.Unlock()
	if to[p.Name] == nil {
		to[p.Name] = make([]float64, p.Elements())
		for i := range to[p.Name] {
			to[p.Name][i] = math.Inf(1) // not seen yet
		}
	}
	for i, x := range v {
		j := p.Logical(lo + i)
		if j < 0 {
			if x != 0 {
				o.disagree = append(o.disagree, fmt.Sprintf("%s %s: padding element %d is %v", what, p.Name, lo+i, x))
			}
			continue
		}
		old := to[p.Name][j]
		if !math.IsInf(old, 1) && math.Float64bits(old) != math.Float64bits(x) {
			o.disagree = append(o.disagree, fmt.Sprintf("%s %s[%d]: %v on %s, %v on a rank before", what, p.Name, j, x, place(w.mesh, w.wire.Rank()), old))
		}
		to[p.Name][j] = x
	}
}

// cutRun trains as cfg says, every rank on a poisoned float64 device, and returns what it did.
func cutRun(t *testing.T, cfg *configs.Config, corpus *data.Corpus, opts ...local.Option) (*history, *Result) {
	t.Helper()
	h, res, err := tryCutRun(cfg, corpus, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return h, res
}

func tryCutRun(cfg *configs.Config, corpus *data.Corpus, opts ...local.Option) (*history, *Result, error) {
	o := newObserver(cfg.Train.Steps)
	res, err := Run(context.Background(), cfg, Options{
		Corpus: corpus, Local: opts, OnWorker: o.attach,
		Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64, Poison: true}) },
	})
	if err != nil {
		return nil, nil, err
	}
	if len(o.disagree) > 0 {
		return nil, nil, fmt.Errorf("%d disagreements between ranks, first: %s", len(o.disagree), o.disagree[0])
	}
	o.h.loss, o.h.norm = res.Loss, res.GradNorm
	return o.h, res, nil
}

// difference is where two histories differ most.
type difference struct {
	relative float64
	where    string
}

func (d *difference) see(relative float64, format string, args ...any) {
	if !(relative <= d.relative) {
		d.relative, d.where = relative, fmt.Sprintf(format, args...)
	}
}

// compare measures numbers against the largest number of the same tensor, and a missing or extra one as infinite.
func compare(got, want *history) difference {
	var d difference
	scalar := func(what string, got, want []float64) {
		if len(got) != len(want) {
			d.see(math.Inf(1), "%s: %d steps, want %d", what, len(got), len(want))
			return
		}
		for i := range want {
			d.see(math.Abs(got[i]-want[i])/math.Abs(want[i]), "%s of step %d: %v, want %v", what, i+1, got[i], want[i])
		}
	}
	scalar("loss", got.loss, want.loss)
	scalar("norm", got.norm, want.norm)
	for i := range want.grads {
		d.tensors(fmt.Sprintf("step %d gradient", i+1), got.grads[i], want.grads[i])
	}
	d.tensors("weight", got.weights, want.weights)
	for name, v := range want.states {
		if len(v) > 0 {
			d.tensors(name, got.states[name], v)
		}
	}
	return d
}

func (d *difference) tensors(what string, got, want values) {
	// Some gradients are zero but for rounding (the key bias under softmax): measured against the whole model.
	floor := 1e-30
	for _, w := range want {
		for _, x := range w {
			floor = max(floor, 1e-3*math.Abs(x))
		}
	}
	for name, w := range want {
		g := got[name]
		if len(g) != len(w) {
			d.see(math.Inf(1), "%s %s: %d elements, want %d", what, name, len(g), len(w))
			continue
		}
		largest := floor
		for _, x := range w {
			largest = max(largest, math.Abs(x))
		}
		for i := range w {
			d.see(math.Abs(g[i]-w[i])/largest, "%s %s[%d]: %v, want %v", what, name, i, g[i], w[i])
		}
	}
	for name := range got {
		if want[name] == nil {
			d.see(math.Inf(1), "%s %s: not in the whole model", what, name)
		}
	}
}
