package train

import (
	"context"
	"math"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

// TestFloat32Bound: in float32 a cut run stays as near to the float64 reference as rounding alone explains. Each of the 2L+4 layers on the way
// rounds sums of at most n = tokens of a batch terms, whose error grows like sqrt(n) (Higham & Mary 2019, §2: with probability
// near one, a small constant times sqrt(n) u); the constant here is 8, u = 2^-24. SGD, so that nothing divides by small moments.
func TestFloat32Bound(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		c := base()
		plainSGD(c)
		c.Model.Family, c.Model.Tied = family, true
		corpus := letters(t, 17, gridTokens)
		want := uncut(t, c, corpus)
		bound := 8 * float64(2*c.Model.Layers+4) * math.Sqrt(gridBatch*gridSequence) * math.Ldexp(1, -24)
		for _, m := range [][3]int{{1, 1, 1}, {2, 2, 2}, {1, 4, 3}} {
			for _, isa := range cpu.Supported() {
				got := float32Run(t, c, m, isa)
				d := compare(got, want)
				if d.relative > bound {
					t.Errorf("%s %v %s: relative difference %.3g at %s, bound %.3g", family, m, isa, d.relative, d.where, bound)
				}
				t.Logf("%s pp%d dp%d tp%d %s: relative difference %.2g, bound %.2g", family, m[0], m[1], m[2], isa, d.relative, bound)
			}
		}
	}
}

func float32Run(t *testing.T, cfg *configs.Config, m [3]int, isa cpu.ISA) *history {
	t.Helper()
	c := *cfg
	c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage = m[0], m[1], m[2], 2
	c.Pipeline.Microbatches = 3
	o := newObserver(c.Train.Steps)
	res, err := Run(context.Background(), &c, Options{
		Corpus: letters(t, 17, gridTokens), OnWorker: o.attach,
		Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F32, ISA: isa, Poison: true}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.disagree) > 0 {
		t.Errorf("ranks disagree: %s", o.disagree[0])
	}
	o.h.loss, o.h.norm = res.Loss, res.GradNorm
	return o.h
}
