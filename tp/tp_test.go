package tp_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
	"triax/tp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tokens, width, hidden, vocab = 12, 8, 24, 13

// outcome is what a piece of model made, in logical coordinates: outputs by token and gradients by parameter.
type outcome struct {
	mu    sync.Mutex
	rows  map[string][]float64
	grads map[string][]float64
}

// rank is one rank's view of a test.
type rank struct {
	*nn.Ctx
	kit nn.Kit
	out *outcome
}

// put writes this rank's token rows of x [T' n].
func (r *rank) put(name string, x *tensor.Tensor) {
	v := make([]float64, x.Len())
	r.Dev.Download(v, x)
	lo, _ := r.kit.Rows(tokens)
	n := x.Len() / x.Shape[0]
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if r.out.rows[name] == nil {
		r.out.rows[name] = make([]float64, tokens*n)
	}
	copy(r.out.rows[name][lo*n:], v)
}

// grad adds up this rank's gradient where it is a partial sum, and writes it where it is whole.
func (r *rank) grad(p *nn.Param) {
	v := make([]float64, p.Len())
	r.Dev.Download(v, p.Grad)
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if r.out.grads[p.Name] == nil {
		r.out.grads[p.Name] = make([]float64, p.Elements())
	}
	for i, x := range v {
		j := p.Logical(i)
		switch {
		case j < 0:
			if x != 0 {
				panic(fmt.Sprintf("%s: padding element %d has gradient %v", p.Name, i, x))
			}
		case len(p.Sum) > 0:
			r.out.grads[p.Name][j] += x
		default:
			r.out.grads[p.Name][j] = x
		}
	}
}

// rows is the token rows of values this rank holds, as a tensor.
func (r *rank) rows(seed, n int) *tensor.Tensor {
	lo, hi := r.kit.Rows(tokens)
	x := r.Dev.New(tensor.Activations, hi-lo, n)
	v := make([]float64, 0, x.Len())
	for i := lo * n; i < hi*n; i++ {
		v = append(v, math.Sin(float64(i*7+seed)))
	}
	r.Dev.Upload(x, v)
	return x
}

func (r *rank) open(ps ...*nn.Param) {
	for _, p := range ps {
		p.Data, p.Grad = r.Dev.New(tensor.Parameters, p.Local...), r.Dev.New(tensor.Gradients, p.Local...)
		nn.Fill(r.Dev, p, 1)
		r.Dev.Zero(p.Grad)
	}
}

// play runs f whole, and cut over t ranks, and compares.
func play(t *testing.T, ranks int, sequence, overlap bool, f func(r *rank) error) *comm.Ledger {
	t.Helper()
	one := func(ctx context.Context, kit nn.Kit, out *outcome, heap **tensor.Heap) error {
		dev := cpu.New(cpu.Options{Float: tensor.F64, Poison: true})
		defer dev.Close()
		if heap != nil {
			*heap = dev.Heap()
		}
		b := &nn.Batch{Samples: 1, Seq: tokens, Scale: 0.1}
		ids := func(mul int) *tensor.Tensor {
			x := dev.Heap().New(tensor.Inputs, tensor.I32, tokens)
			v := make([]int32, tokens)
			for i := range v {
				v[i] = int32(i * mul % vocab)
			}
			dev.UploadI32(x, v)
			return x
		}
		b.Tokens, b.Targets = ids(5), ids(3)
		return f(&rank{&nn.Ctx{Context: ctx, Dev: dev, Batch: b, Train: true}, kit, out})
	}
	fresh := func() *outcome { return &outcome{rows: map[string][]float64{}, grads: map[string][]float64{}} }
	want, got := fresh(), fresh()
	if err := one(context.Background(), nn.Serial{}, want, nil); err != nil {
		t.Fatal(err)
	}
	world := local.New(ranks)
	defer world.Close()
	ledger := &comm.Ledger{}
	members := make([]int, ranks)
	for i := range members {
		members[i] = i
	}
	g, ctx := errgroup.WithContext(context.Background())
	for i := range ranks {
		g.Go(func() error {
			group, err := comm.NewGroup(ctx, world.Rank(i, tensor.NewHeap(nil, false)), "tp", "tp", members, ledger)
			if err != nil {
				return err
			}
			kit := tp.Kit{Group: group, Sequence: sequence && ranks > 1}
			if overlap {
				kit.Stream = comm.NewStream()
				defer kit.Stream.Close()
			}
			return one(ctx, kit, got, nil)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	same := func(kind string, got, want map[string][]float64) {
		for name, w := range want {
			v := got[name]
			if len(v) != len(w) {
				t.Errorf("%s %s: %d elements, want %d", kind, name, len(v), len(w))
				continue
			}
			for i := range w {
				if math.Abs(v[i]-w[i]) > 1e-12 {
					t.Errorf("%s %s[%d] = %v, want %v", kind, name, i, v[i], w[i])
					break
				}
			}
		}
	}
	same("rows of", got.rows, want.rows)
	same("gradient of", got.grads, want.grads)
	return ledger
}

// each runs f for every number of ranks that divides the tokens, with and without sequence parallelism and overlap.
func each(t *testing.T, f func(r *rank) error) {
	for _, ranks := range []int{1, 2, 3, 4} {
		for _, sequence := range []bool{false, true} {
			for _, overlap := range []bool{false, true} {
				t.Run(fmt.Sprintf("tp%d/sequence %v/overlap %v", ranks, sequence, overlap), func(t *testing.T) {
					play(t, ranks, sequence, overlap, f)
				})
			}
		}
	}
}

// feedForward is column, activation, row, both ways.
func feedForward(r *rank) error {
	up := r.kit.Column("up", width, nn.Part{Out: hidden, Bias: true, Init: nn.Init{Std: 0.5}}, nn.Part{Name: "b", Out: hidden, Init: nn.Init{Std: 0.5}})
	down := r.kit.Row("down", hidden, nn.Part{Out: width, Bias: true, Init: nn.Init{Std: 0.5}})
	params := append(up.Params(), down.Params()...)
	r.open(params...)
	hs, s1, err := up.Forward(r.Ctx, r.rows(1, width))
	if err != nil {
		return err
	}
	a := r.Dev.New(tensor.Activations, hs[0].Shape...)
	r.Dev.SwiGLU(a, hs[0], hs[1])
	ys, s2, err := down.Forward(r.Ctx, a)
	if err != nil {
		return err
	}
	r.put("y", ys[0])
	da, err := down.BackwardInput(r.Ctx, s2, []*tensor.Tensor{r.rows(2, width)})
	if err != nil {
		return err
	}
	dg, du := r.Dev.New(tensor.Activations, da.Shape...), r.Dev.New(tensor.Activations, da.Shape...)
	r.Dev.SwiGLUGrad(dg, du, hs[0], hs[1], da)
	if err := down.BackwardWeight(r.Ctx, s2); err != nil {
		return err
	}
	var dx *tensor.Tensor
	if j, ok := up.(nn.JoinedLinear); ok {
		dx, err = j.Backward(r.Ctx, s1, []*tensor.Tensor{dg, du})
	} else if dx, err = up.BackwardInput(r.Ctx, s1, []*tensor.Tensor{dg, du}); err == nil {
		err = up.BackwardWeight(r.Ctx, s1)
	}
	if err != nil {
		return err
	}
	r.put("dx", dx)
	for _, p := range params {
		r.grad(p)
	}
	return nil
}

// TestFeedForward: a column-cut and a row-cut matrix with an activation between are the whole layer, forward and backward; biases
// are added once, and their gradients are whole.
func TestFeedForward(t *testing.T) { each(t, feedForward) }

// TestB57Vocabulary: embedding, output matrix and loss over a vocabulary of 13, which no number of ranks above one divides: padding
// takes no part in the softmax and gets no gradient (B56, B57).
func TestB57Vocabulary(t *testing.T) {
	each(t, func(r *rank) error {
		table := r.kit.Table("table", vocab, width, nn.Init{Std: 0.7})
		r.open(table)
		var x, dy *tensor.Tensor
		layers := []nn.Layer{r.kit.Embedding(table), r.kit.Head(table), r.kit.Loss(vocab)}
		saved := make([]nn.Saved, len(layers))
		var err error
		for i, l := range layers {
			if x, saved[i], err = l.Forward(r.Ctx, x); err != nil {
				return err
			}
			if i == 0 {
				r.put("embedding", x)
			}
		}
		var loss [1]float64
		r.Dev.Download(loss[:], x)
		r.out.mu.Lock()
		r.out.rows["loss"] = loss[:]
		r.out.mu.Unlock()
		for i := len(layers) - 1; i >= 0; i-- {
			if dy, err = nn.Backward(r.Ctx, layers[i], saved[i], dy); err != nil {
				return err
			}
			if i == 1 {
				r.put("dx", dy)
			}
		}
		r.grad(table)
		return nil
	})
}

// TestShoeybiCounts: one all-reduce in the forward pass of a column-row pair and one in the backward (Shoeybi et al. 2019, §3); with
// sequence parallelism the same bytes as all-gathers and reduce-scatters, and one all-gather more of each direction's kept rows
// (Korthikanti et al. 2022, §4.2.2).
func TestShoeybiCounts(t *testing.T) {
	const bytes, ranks = tokens * width * 8, 4
	for sequence, want := range map[bool]string{
		false: fmt.Sprintf("[tp all_reduce: %d calls, %d bytes]", 2*ranks, 2*ranks*bytes),
		true:  fmt.Sprintf("[tp all_gather: %d calls, %d bytes tp reduce_scatter: %d calls, %d bytes]", 3*ranks, 3*ranks*bytes, 2*ranks, 2*ranks*bytes),
	} {
		if got := fmt.Sprint(play(t, ranks, sequence, false, feedForward).Entries()); got != want {
			t.Errorf("sequence %v: %s, want %s", sequence, got, want)
		}
	}
}

// TestHeads: key/value heads fewer than ranks are held by runs of ranks, whose gradients are summed.
func TestHeads(t *testing.T) {
	for place := range 4 {
		k := tp.Kit{Group: groupOf(t, 4, place)}
		if n, first := k.Heads(8); n != 2 || first != 2*place {
			t.Errorf("place %d: heads %d from %d", place, n, first)
		}
		if n, first := k.Heads(2); n != 1 || first != place/2 {
			t.Errorf("place %d: key heads %d from %d", place, n, first)
		}
		p := k.Column("kv", width, nn.Part{Out: 2 * 3, Unit: 3}).Params()[0]
		if p.Lo != place/2*3 || p.Hi != place/2*3+3 || p.Counted != (place%2 == 0) || len(p.Sum) != 1 || p.Sum[0].Size != 2 {
			t.Errorf("place %d: %+v", place, p)
		}
	}
}

func groupOf(t *testing.T, size, place int) *comm.Group {
	t.Helper()
	ranks := make([]int, size)
	for i := range ranks {
		ranks[i] = i
	}
	g, err := comm.NewGroup(context.Background(), local.New(size).Rank(place, tensor.NewHeap(nil, false)), "tp", "tp", ranks, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
