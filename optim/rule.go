package optim

import (
	"fmt"

	"triax/tensor"
)

// Rule turns gradients into new weights, on flat slices of one length. Implementations hold constants only; all
// that changes from step to step is passed in, so a rule may be shared by all ranks.
type Rule interface {
	// States is the number of state tensors, each as long as the weights and zero at the start.
	States() int
	// StateNames names them as checkpoints do.
	StateNames() []string
	// Update changes w and state in place. step counts from 1, decay tells whether these weights take weight
	// decay, and scale multiplies the gradient first (the clipping factor).
	Update(dev tensor.Update, w, g *tensor.Tensor, state []*tensor.Tensor, step int, rate float64, decay bool, scale float64)
	String() string
}

// New makes the rule of a section. It fails on a name it does not know and on a wrong number of betas; the ranges of
// the numbers are checked where configurations are loaded.
func New(c Config) (Rule, error) {
	switch c.Rule {
	case "sgd":
		return sgd{momentum: c.Momentum, decay: c.WeightDecay}, nil
	case "adamw":
	default:
		return nil, fmt.Errorf("optim: rule %q: want one of %v", c.Rule, Rules)
	}
	if n := len(c.Betas); n != 0 && n != 2 {
		return nil, fmt.Errorf("optim: %d betas: AdamW has two", n)
	}
	a := adamw{beta1: 0.9, beta2: 0.95, eps: 1e-8, decay: c.WeightDecay}
	if len(c.Betas) == 2 {
		a.beta1, a.beta2 = c.Betas[0], c.Betas[1]
	}
	if c.Eps > 0 {
		a.eps = c.Eps
	}
	return a, nil
}

// adamw is Adam with decoupled weight decay (Loshchilov & Hutter 2019, Algorithm 2).
type adamw struct{ beta1, beta2, eps, decay float64 }

func (a adamw) States() int          { return 2 }
func (a adamw) StateNames() []string { return []string{"exp_avg", "exp_avg_sq"} }

func (a adamw) Update(dev tensor.Update, w, g *tensor.Tensor, state []*tensor.Tensor, step int, rate float64, decay bool, scale float64) {
	mustHold(a, state)
	u := tensor.AdamW{Rate: rate, Beta1: a.beta1, Beta2: a.beta2, Eps: a.eps, Step: step, Scale: scale}
	if decay {
		u.Decay = a.decay
	}
	dev.AdamW(w, g, state[0], state[1], u)
}

func (a adamw) String() string {
	return fmt.Sprintf("adamw(betas %g %g, eps %g, weight decay %g)", a.beta1, a.beta2, a.eps, a.decay)
}

// sgd is gradient descent with (heavy-ball) momentum and coupled weight decay (Sutskever et al. 2013, §2,
// with the rate outside the velocity).
type sgd struct{ momentum, decay float64 }

func (s sgd) States() int { return len(s.StateNames()) }

func (s sgd) StateNames() []string {
	if s.momentum == 0 {
		return nil
	}
	return []string{"momentum"}
}

func (s sgd) Update(dev tensor.Update, w, g *tensor.Tensor, state []*tensor.Tensor, _ int, rate float64, decay bool, scale float64) {
	mustHold(s, state)
	u := tensor.SGD{Rate: rate, Momentum: s.momentum, Scale: scale}
	if decay {
		u.Decay = s.decay
	}
	var m *tensor.Tensor
	if len(state) == 1 {
		m = state[0]
	}
	dev.SGD(w, g, m, u)
}

func (s sgd) String() string {
	return fmt.Sprintf("sgd(momentum %g, weight decay %g)", s.momentum, s.decay)
}

func mustHold(r Rule, state []*tensor.Tensor) {
	if len(state) != r.States() {
		panic(fmt.Sprintf("optim: %v given %d state tensors, has %d", r, len(state), r.States()))
	}
}
