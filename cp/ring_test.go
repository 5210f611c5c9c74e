package cp

import (
	"context"
	"fmt"
	"math"
	"testing"

	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

// TestStretchesBalance: every rank has the same number of blocks to work on, each pair of stretches that may see one another exactly once.
func TestStretchesBalance(t *testing.T) {
	for c := 1; c <= 8; c++ {
		seen := map[[2]int]int{}
		for place := range c {
			r := &ring{c: c, place: place}
			whole, causal := 0, 0
			for from := range c {
				for _, p := range r.pairs(from, tensor.Attention{Seq: 2}) {
					seen[[2]int{p.at.QueryOffset, p.at.KeyOffset}]++
					if p.at.Full {
						whole++
					} else {
						causal++
					}
				}
			}
			if whole != 2*c-1 || causal != 2 {
				t.Errorf("c %d: rank %d has %d whole and %d causal blocks, want %d and 2", c, place, whole, causal, 2*c-1)
			}
		}
		for q := range 2 * c {
			for k := range 2 * c {
				if n := seen[[2]int{q, k}]; (q >= k) != (n == 1) || n > 1 {
					t.Errorf("c %d: stretches %d, %d worked on %d times", c, q, k, n)
				}
			}
		}
	}
}

// TestRing: attention and its gradients over c ranks are those of whole samples, with dropout, over every transport's manners.
func TestRing(t *testing.T) {
	const samples, seq, heads, kv, hd = 2, 24, 4, 2, 3
	at := tensor.Attention{Samples: samples, Heads: heads, KVHeads: kv, HeadDim: hd, Rate: 0.2, Seed: 9, HeadsTotal: heads}
	want := attend(t, 1, at, seq, local.New(1))
	for _, c := range []int{2, 3, 4, 6} {
		for name, opts := range map[string][]local.Option{"plain": nil, "rendezvous and copied": {local.Rendezvous(), local.Copied()}} {
			t.Run(fmt.Sprintf("%d ranks, %s", c, name), func(t *testing.T) {
				got := attend(t, c, at, seq, local.New(c, opts...))
				for what, w := range want {
					for i := range w {
						if math.Abs(got[what][i]-w[i]) > 1e-12 {
							t.Fatalf("%s[%d] = %v, want %v", what, i, got[what][i], w[i])
						}
					}
				}
			})
		}
	}
}

// attend runs forward and backward on c ranks and returns o, dq, dk and dv of whole samples, in order.
func attend(t *testing.T, c int, at tensor.Attention, seq int, world *local.World) map[string][]float64 {
	t.Helper()
	defer world.Close()
	q, k := at.Heads*at.HeadDim, at.KVHeads*at.HeadDim
	out := map[string][]float64{}
	for what, n := range map[string]int{"o": q, "dq": q, "dk": k, "dv": k} {
		out[what] = make([]float64, at.Samples*seq*n)
	}
	ranks := make([]int, c)
	for i := range ranks {
		ranks[i] = i
	}
	g, ctx := errgroup.WithContext(context.Background())
	for rank := range c {
		g.Go(func() error {
			dev := cpu.New(cpu.Options{Float: tensor.F64, Poison: true})
			defer dev.Close()
			wire := world.Rank(rank, dev.Heap())
			group, err := comm.NewGroup(ctx, wire, "cp", "cp", ranks, nil)
			if err != nil {
				return err
			}
			core := Kit{Kit: nn.Serial{}, Group: group, Wire: wire, Ledger: &comm.Ledger{}}.Core()
			// row is where a token of a sample lies here, or -1.
			tokens := at.Samples * seq / c
			var order [][2]int // sample, position of every row
			n := seq / (2 * c)
			for _, s := range Stretches(rank, c) {
				for sample := range at.Samples {
					for i := range n {
						order = append(order, [2]int{sample, s*n + i})
					}
				}
			}
			if c == 1 {
				order = nil
				for i := range tokens {
					order = append(order, [2]int{i / seq, i % seq})
				}
			}
			fill := func(seed, width int) *tensor.Tensor {
				x := dev.New(tensor.Activations, tokens, width)
				v := make([]float64, 0, x.Len())
				for _, o := range order {
					for f := range width {
						v = append(v, math.Sin(float64(seed+(o[0]*seq+o[1])*width+f)))
					}
				}
				dev.Upload(x, v)
				return x
			}
			blank := func(width int) *tensor.Tensor { return dev.New(tensor.Activations, tokens, width) }
			at := at
			at.Seq = seq / c
			at.SampleIndex = dev.Heap().New(tensor.Inputs, tensor.I32, at.Samples)
			dev.UploadI32(at.SampleIndex, []int32{5, 6})
			qs, ks, vs, do := fill(1, q), fill(2, k), fill(3, k), fill(4, q)
			o, lse := blank(q), dev.New(tensor.Activations, at.Samples, at.Heads, at.Seq)
			call := &nn.Ctx{Context: ctx, Dev: dev}
			if err := core.Forward(call, o, lse, qs, ks, vs, at); err != nil {
				return err
			}
			dq, dk, dv := blank(q), blank(k), blank(k)
			if err := core.Backward(call, dq, dk, dv, do, o, lse, qs, ks, vs, at); err != nil {
				return err
			}
			for what, x := range map[string]*tensor.Tensor{"o": o, "dq": dq, "dk": dk, "dv": dv} {
				v := make([]float64, x.Len())
				dev.Download(v, x)
				width := x.Shape[1]
				for r, p := range order { // ranks write disjoint rows
					copy(out[what][(p[0]*seq+p[1])*width:], v[r*width:(r+1)*width])
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return out
}
