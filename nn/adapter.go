package nn

import (
	"math"
	"slices"

	"triax/tensor"
)

// Adapter is a low-rank correction beside a matrix that does not learn (Hu et al. 2022, §4.1):
//
//	x ─┬─▶ W (frozen) ───────────▶ + ─▶ y        W' = W + scale B A
//	   └─▶ A [r In] ─▶ B [Out r] ──┘             scale = alpha / r; B starts at zero
//
// Both kinds of cut need no communication of their own. Beside a column-cut matrix A is whole, B is cut like W, and A's gradient is a
// partial sum. Beside a row-cut one A is cut like W, B is whole, and what B adds to y is a partial sum like W's; so is B's gradient.
type Adapter struct {
	A, B  *Param
	Scale float64
}

// LoRATargets are the matrices that can have an adapter.
var LoRATargets = []string{"q", "k", "v", "out", "gate", "up", "down"}

// adapted adds what the configuration asks for to the parts of a linear layer.
func (c Config) adapted(parts ...Part) []Part {
	for i, p := range parts {
		if c.LoRARank > 0 && slices.Contains(c.LoRATargets, p.Name) {
			parts[i].Rank, parts[i].Scale = c.LoRARank, c.LoRAAlpha/float64(c.LoRARank)
		}
	}
	return parts
}

// NewAdapter makes the two parameters of a part: replicated is the whole one, cut the one that is cut like the matrix. A starts with the
// variance 1/(3 In), B at zero, so that training starts from the frozen model.
func (p Part) NewAdapter(name string, in int, a, b func(*Param) *Param) *Adapter {
	if p.Rank == 0 {
		return nil
	}
	std := 1 / math.Sqrt(3*float64(in))
	return &Adapter{
		Scale: p.Scale,
		A:     a(&Param{Name: name + ".lora_A.weight", Shape: []int{p.Rank, in}, Decay: true, Adapter: true, Init: Init{Std: std}}),
		B:     b(&Param{Name: name + ".lora_B.weight", Shape: []int{p.Out, p.Rank}, Decay: true, Adapter: true}),
	}
}

// Params are A and B; none of a nil adapter.
func (a *Adapter) Params() []*Param {
	if a == nil {
		return nil
	}
	return []*Param{a.A, a.B}
}

// Forward adds to y [T Out] and returns u = scale x A^T [T r], which the weight gradient needs; nil of a nil adapter.
func (a *Adapter) Forward(ctx *Ctx, y, x *tensor.Tensor) *tensor.Tensor {
	if a == nil {
		return nil
	}
	u := ctx.Dev.New(tensor.Activations, x.Shape[0], a.A.Local[0])
	ctx.Dev.Gemm(u, x, a.A.Data, false, true, 0)
	ctx.Dev.Scale(u, a.Scale)
	ctx.Dev.Gemm(y, u, a.B.Data, false, true, 1)
	return u
}

// Input adds to dx [T In] and returns v = scale dy B [T r].
func (a *Adapter) Input(ctx *Ctx, dx, dy *tensor.Tensor) *tensor.Tensor {
	if a == nil {
		return nil
	}
	v := ctx.Dev.New(tensor.Activations, dy.Shape[0], a.A.Local[0])
	ctx.Dev.Gemm(v, dy, a.B.Data, false, false, 0)
	ctx.Dev.Scale(v, a.Scale)
	ctx.Dev.Gemm(dx, v, a.A.Data, false, false, 1)
	return v
}

// Weight adds the gradients: dA += v^T x, dB += dy^T u.
func (a *Adapter) Weight(ctx *Ctx, x, dy, u, v *tensor.Tensor) {
	if a == nil {
		return
	}
	ctx.Dev.Gemm(a.A.Grad, v, x, true, false, 1)
	ctx.Dev.Gemm(a.B.Grad, dy, u, true, false, 1)
}

// LowRank is what a linear layer's adapters keep, part by part: scale x A^T of the forward, scale dy B of the backward.
type LowRank struct{ Us, Vs []*tensor.Tensor }

// Release drops them.
func (l *LowRank) Release() {
	for _, t := range append(l.Us, l.Vs...) {
		t.Release()
	}
	*l = LowRank{}
}

// Freeze marks all parameters as not learning: no gradient is computed or kept.
func Freeze(layers []Layer) {
	for _, l := range layers {
		for _, p := range l.Params() {
			p.Frozen = true
		}
	}
}

// freeze marks what does not learn where there are adapters: everything else.
func freeze(layers []Layer) {
	for _, l := range layers {
		for _, p := range l.Params() {
			p.Frozen = !p.Adapter
		}
	}
}
