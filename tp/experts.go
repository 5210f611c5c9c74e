package tp

import (
	"context"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// Experts are not cut over tensor ranks. Where token rows are, each rank sends its own rows through whole experts; where they are
// not, all ranks do the same work on the same tokens.
func (k Kit) Experts() nn.Experts { return experts{kit: k} }

type experts struct {
	nn.OneRank
	kit Kit
}

func (x experts) Param(p *nn.Param) *nn.Param { return x.kit.Replicated(p) }

func (x experts) SumSamples(ctx context.Context, t *tensor.Tensor) error {
	if !x.kit.Sequence {
		return nil
	}
	return x.kit.Group.AllReduce(ctx, t, comm.Sum)
}

func (x experts) Owner() bool { return x.kit.Sequence || x.kit.Group.Place() == 0 }
