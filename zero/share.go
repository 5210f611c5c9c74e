package zero

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// share is one all-reduce over a group other than data: the pieces of all parameters that owe it, packed.
type share struct {
	group  *comm.Group
	pieces []*tensor.Tensor
	len    int
}

// sumShares adds partial gradients over the other axes: parameters that are replicated along an axis while
// their gradients are partial sums (Param.Sum), and the copies of tied parameters on other pipeline
// ranks (Param.Tied). It works on this rank's part after the data-axis sum: sums commute, and the parts
// have the same borders on all members, so stage 3 needs no more than stage 0.
func (o *Optimizer) sumShares(ctx context.Context) error {
	for _, s := range o.shares() {
		if s.group.Size() == 1 || s.len == 0 {
			continue
		}
		pack := tensor.NewAccum(o.dev, tensor.Buffers, s.len)
		at := 0
		for _, p := range s.pieces {
			o.dev.Copy(pack.Flat(at, at+p.Len()), p)
			at += p.Len()
		}
		err := s.group.AllReduce(ctx, pack, comm.Sum)
		at = 0
		for _, p := range s.pieces {
			o.dev.Copy(p, pack.Flat(at, at+p.Len()))
			at += p.Len()
		}
		pack.Release()
		if err != nil {
			return fmt.Errorf("sum gradients over %v: %w", s.group, err)
		}
	}
	return nil
}

// shares groups the pieces by span in the order in which they first occur, which is the same on all members.
func (o *Optimizer) shares() []*share {
	var order []*share
	bySpan := map[nn.Span]*share{}
	var tied *share
	for _, b := range o.learned {
		base, hi := o.bounds(b)
		for _, p := range b.pieces(base, hi) {
			grad := b.mem.sum.Flat(p.at-base, p.at-base+p.hi-p.lo)
			for _, span := range p.param.Sum {
				s := bySpan[span]
				if s == nil {
					s = &share{group: o.groups.Span(span)}
					bySpan[span] = s
					order = append(order, s)
				}
				s.pieces = append(s.pieces, grad)
				s.len += grad.Len()
			}
			if p.param.Tied {
				if tied == nil {
					tied = &share{group: o.groups.Tied}
					order = append(order, tied)
				}
				tied.pieces = append(tied.pieces, grad)
				tied.len += grad.Len()
			}
		}
	}
	return order
}

// Counted is the number of logical parameter elements that this rank counts, over its whole pipeline stages and
// regardless of the data axis: summed over one replica it is the size of the model. Along the expert axis each rank counts its
// experts, and the first one the rest.
func (o *Optimizer) Counted(firstExperts bool) int64 {
	n := int64(0)
	for _, b := range o.buckets {
		for _, p := range b.params {
			if p.Counted && (firstExperts || p.Expert()) {
				n += int64(p.Held())
			}
		}
	}
	return n
}
