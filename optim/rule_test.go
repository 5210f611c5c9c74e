package optim

import (
	"math"
	"testing"

	"triax/tensor"
)

// reference is the update written plainly, in float64, one element at a time.
type reference struct{ w, m, v []float64 }

// adamw follows Algorithm 2 of Loshchilov & Hutter 2019 line by line.
func (r *reference) adamw(g []float64, lr, b1, b2, eps, decay, scale float64, step int) {
	for i := range r.w {
		grad := scale * g[i]
		r.m[i] = b1*r.m[i] + (1-b1)*grad
		r.v[i] = b2*r.v[i] + (1-b2)*grad*grad
		mhat := r.m[i] / (1 - math.Pow(b1, float64(step)))
		vhat := r.v[i] / (1 - math.Pow(b2, float64(step)))
		r.w[i] -= lr * (mhat/(math.Sqrt(vhat)+eps) + decay*r.w[i])
	}
}

func (r *reference) sgd(g []float64, lr, momentum, decay, scale float64) {
	for i := range r.w {
		r.m[i] = momentum*r.m[i] + scale*g[i] + decay*r.w[i]
		r.w[i] -= lr * r.m[i]
	}
}

// plain is a device that updates with the reference; it records what a rule asked for.
type plain struct{}

func (plain) AdamW(w, g, m, v *tensor.Tensor, u tensor.AdamW) {
	r := reference{w.F64(), m.F64(), v.F64()}
	r.adamw(g.F64(), u.Rate, u.Beta1, u.Beta2, u.Eps, u.Decay, u.Scale, u.Step)
}

func (plain) SGD(w, g, m *tensor.Tensor, u tensor.SGD) {
	r := reference{w: w.F64()}
	if m == nil {
		r.m = make([]float64, w.Len())
	} else {
		r.m = m.F64()
	}
	r.sgd(g.F64(), u.Rate, u.Momentum, u.Decay, u.Scale)
}

func (plain) SumSquares(*tensor.Tensor) float64 { panic("no rule asks for norms") }

func TestRulesFollowTheirPapers(t *testing.T) {
	tests := []struct {
		name  string
		cfg   Config
		decay bool
		want  func(r *reference, g []float64, step int)
	}{
		{"adamw decay", Config{Rule: "adamw", Betas: []float64{0.8, 0.9}, Eps: 1e-6, WeightDecay: 0.1}, true,
			func(r *reference, g []float64, step int) { r.adamw(g, 0.01, 0.8, 0.9, 1e-6, 0.1, 0.5, step) }},
		{"adamw, a parameter without decay", Config{Rule: "adamw", WeightDecay: 0.1}, false,
			func(r *reference, g []float64, step int) { r.adamw(g, 0.01, 0.9, 0.95, 1e-8, 0, 0.5, step) }},
		{"sgd momentum decay", Config{Rule: "sgd", Momentum: 0.9, WeightDecay: 0.1}, true,
			func(r *reference, g []float64, step int) { r.sgd(g, 0.01, 0.9, 0.1, 0.5) }},
		{"sgd plain", Config{Rule: "sgd"}, true,
			func(r *reference, g []float64, step int) { r.sgd(g, 0.01, 0, 0, 0.5) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule, err := New(test.cfg)
			if err != nil {
				t.Fatal(err)
			}
			start := []float64{1, -2, 0.5, 0, 3}
			w := tensor.Of(tensor.F64, append([]float64(nil), start...), 5)
			var state []*tensor.Tensor
			for range rule.States() {
				state = append(state, tensor.Of(tensor.F64, make([]float64, 5), 5))
			}
			ref := reference{append([]float64(nil), start...), make([]float64, 5), make([]float64, 5)}
			for step := 1; step <= 4; step++ {
				g := []float64{0.1, 0, -3, float64(step), 1e-9}
				rule.Update(plain{}, w, tensor.Of(tensor.F64, g, 5), state, step, 0.01, test.decay, 0.5)
				test.want(&ref, g, step)
			}
			for i, x := range w.F64() {
				if x != ref.w[i] {
					t.Errorf("w[%d] = %v, want %v", i, x, ref.w[i])
				}
			}
			if w.F64()[0] == start[0] {
				t.Error("nothing was updated")
			}
		})
	}
}

// One step by hand: with zero state the first AdamW step has mhat = g and vhat = g², so it moves by
// lr g/(|g|+eps), whatever the size of g.
func TestFirstAdamWStep(t *testing.T) {
	rule, _ := New(Config{Rule: "adamw", WeightDecay: 0.5})
	w := tensor.Of(tensor.F64, []float64{2, 2}, 2)
	state := []*tensor.Tensor{tensor.Of(tensor.F64, make([]float64, 2), 2), tensor.Of(tensor.F64, make([]float64, 2), 2)}
	rule.Update(plain{}, w, tensor.Of(tensor.F64, []float64{1e3, -1e-3}, 2), state, 1, 0.1, true, 1)
	for i, want := range []float64{2 - 0.1 - 0.1*0.5*2, 2 + 0.1 - 0.1*0.5*2} {
		if math.Abs(w.F64()[i]-want) > 1e-5 {
			t.Errorf("w[%d] = %v, want %v", i, w.F64()[i], want)
		}
	}
}

func TestStates(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want int
	}{
		{Config{Rule: "adamw"}, 2}, {Config{Rule: "sgd", Momentum: 0.9}, 1}, {Config{Rule: "sgd"}, 0},
	} {
		r, err := New(test.cfg)
		if err != nil || r.States() != test.want || len(r.StateNames()) != test.want {
			t.Errorf("%v: %d states, want %d (%v)", r, r.States(), test.want, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []Config{{}, {Rule: "adam"}, {Rule: "adamw", Betas: []float64{0.9}}} {
		if r, err := New(c); err == nil {
			t.Errorf("%+v gave %v", c, r)
		}
	}
}

func TestMissingStatePanics(t *testing.T) {
	rule, _ := New(Config{Rule: "adamw"})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	w := tensor.Of(tensor.F64, []float64{1}, 1)
	rule.Update(plain{}, w, w, nil, 1, 0.1, true, 1)
}
