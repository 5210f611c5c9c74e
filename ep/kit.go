package ep

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/mesh"
	"triax/nn"
	"triax/tensor"
)

// Kit makes another kit's layers, with experts shared out over a group.
type Kit struct {
	nn.Kit
	Group *comm.Group
}

// Experts wraps the inner kit's: it changes who holds which expert.
func (k Kit) Experts() nn.Experts {
	if k.Group.Size() == 1 {
		return k.Kit.Experts()
	}
	return experts{k.Kit.Experts(), k.Group}
}

type experts struct {
	nn.Experts
	group *comm.Group
}

func (x experts) Ranks() int { return x.group.Size() }

func (x experts) Span(n int) (lo, hi int) {
	g, r := x.group.Size(), x.group.Place()
	if n%g != 0 {
		panic(fmt.Sprintf("ep: %d experts over %d ranks", n, g))
	}
	return n / g * r, n / g * (r + 1)
}

func (x experts) Param(p *nn.Param) *nn.Param {
	p = x.Experts.Param(p)
	p.Dim = 0
	p.Lo, p.Hi = x.Span(p.Shape[0])
	p.Local = append([]int{p.Hi - p.Lo}, p.Shape[1:]...)
	p.Cut = append(p.Cut, mesh.EP)
	return p
}

func (x experts) Exchange(ctx context.Context, dev tensor.Device, dst, src *tensor.Tensor) error {
	return x.group.AllToAll(ctx, dev, dst, src)
}

func (x experts) Max(ctx context.Context, t *tensor.Tensor) error {
	return x.group.AllReduce(ctx, t, comm.Max)
}
