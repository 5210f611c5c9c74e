package cp

import (
	"context"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// Experts wraps the inner kit's: counts by sample are summed over the ring as well.
func (k Kit) Experts() nn.Experts { return experts{k.Kit.Experts(), k.Group} }

type experts struct {
	nn.Experts
	group *comm.Group
}

func (x experts) SumSamples(ctx context.Context, t *tensor.Tensor) error {
	if err := x.Experts.SumSamples(ctx, t); err != nil {
		return err
	}
	return x.group.AllReduce(ctx, t, comm.Sum)
}
