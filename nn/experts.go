package nn

import (
	"context"

	"triax/tensor"
)

// Experts is how a mixture of experts is shared out over ranks. OneRank holds all experts; kits wrap one another's, each for its axis.
type Experts interface {
	// Span is the experts, out of n, that this rank holds: lo up to hi.
	Span(n int) (lo, hi int)
	// Param marks a parameter [E ...] that stacks all experts: this rank holds those of Span.
	Param(p *Param) *Param
	// Ranks is how many ranks share out the experts; all hold the same number.
	Ranks() int
	// Exchange sends part i of src to rank i and puts what rank i sent at part i of dst.
	Exchange(ctx context.Context, dev tensor.Device, dst, src *tensor.Tensor) error
	// Max is in place the largest over the ranks that exchange.
	Max(ctx context.Context, t *tensor.Tensor) error
	// SumSamples adds, in place, what ranks that hold other tokens of the same samples have counted.
	SumSamples(ctx context.Context, t *tensor.Tensor) error
	// Owner says whether this rank's tokens are counted by it: of ranks that all hold the same ones, one.
	Owner() bool
}

// OneRank holds all experts and whole samples.
type OneRank struct{}

func (OneRank) Span(n int) (lo, hi int) { return 0, n }
func (OneRank) Param(p *Param) *Param   { return whole(p) }
func (OneRank) Ranks() int              { return 1 }
func (OneRank) Exchange(_ context.Context, dev tensor.Device, dst, src *tensor.Tensor) error {
	dev.Copy(dst, src)
	return nil
}
func (OneRank) Max(context.Context, *tensor.Tensor) error        { return nil }
func (OneRank) SumSamples(context.Context, *tensor.Tensor) error { return nil }
func (OneRank) Owner() bool                                      { return true }
