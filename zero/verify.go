package zero

import (
	"context"
	"fmt"
	"math"
	"strings"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// The checks of [train] verify: what is a copy must be equal to the last bit on all ranks that hold it. They cost a read of all
// memory and a small gather for each kind of copy, and run only when asked for.

// item is one thing whose bits are compared.
type item struct {
	name string
	sum  float64 // 53 bits of a hash of the bits
}

// Verify compares weights and optimizer states after a step: whole weights over the shard axis, owned pieces over the replica axis,
// replicated parameters over the tensor axis, and both copies of a tied table. An error names parameter and ranks.
func (o *Optimizer) Verify(ctx context.Context) error {
	if o.cfg.Stage < 3 {
		var whole [2][]item
		for _, b := range o.buckets {
			at := &whole[kindOf(b)]
			for i, p := range b.params {
				*at = append(*at, o.item("weight", p, b.mem.data.Flat(b.offset[i], b.offset[i]+p.Len())))
			}
		}
		for i, items := range whole {
			if err := o.same(ctx, o.groups.shards(i == 1), items); err != nil {
				return err
			}
		}
	}
	return o.verifyPieces(ctx, func(yield func(string, piece, *tensor.Tensor)) {
		for _, b := range o.buckets {
			base, hi := o.bounds(b)
			for _, p := range b.pieces(base, hi) {
				from, to := p.at-base, p.at-base+p.hi-p.lo
				yield("weight", p, b.mem.shard.Flat(from, to))
				if b.mem.master != nil {
					yield("master copy", p, b.mem.master.Flat(from, to))
				}
				for i, s := range b.mem.state {
					yield(o.rule.StateNames()[i], p, s.Flat(from, to))
				}
			}
		}
	})
}

// verifyGrads compares the summed gradients before they are used.
func (o *Optimizer) verifyGrads(ctx context.Context) error {
	return o.verifyPieces(ctx, func(yield func(string, piece, *tensor.Tensor)) {
		for _, b := range o.learned {
			base, hi := o.bounds(b)
			for _, p := range b.pieces(base, hi) {
				yield("gradient", p, b.mem.sum.Flat(p.at-base, p.at-base+p.hi-p.lo))
			}
		}
	})
}

// verifyPieces compares owned pieces in every group whose members hold copies of them.
func (o *Optimizer) verifyPieces(ctx context.Context, each func(yield func(string, piece, *tensor.Tensor))) error {
	copies := [2]*comm.Group{o.replicas, o.replicas}
	if o.cfg.Stage == 0 {
		copies = [2]*comm.Group{o.groups.Data, o.groups.ExpertData}
	}
	var all [2][]item // plain and experts'
	var tied []item
	spans := map[nn.Span][]item{}
	var order []nn.Span
	each(func(what string, p piece, t *tensor.Tensor) {
		it := o.item(what, p.param, t)
		i := 0
		if p.param.Expert() {
			i = 1
		}
		all[i] = append(all[i], it)
		if p.param.Tied {
			tied = append(tied, it)
		}
		for _, s := range p.param.Same {
			if spans[s] == nil {
				order = append(order, s)
			}
			spans[s] = append(spans[s], it)
		}
	})
	for i, items := range all {
		if err := o.same(ctx, copies[i], items); err != nil {
			return err
		}
	}
	for _, s := range order {
		if err := o.same(ctx, o.groups.Span(s), spans[s]); err != nil {
			return err
		}
	}
	if o.groups.Tied == nil {
		return nil
	}
	return o.same(ctx, o.groups.Tied, tied)
}

func kindOf(b *bucket) int {
	if b.expert {
		return 1
	}
	return 0
}

func (o *Optimizer) item(what string, p *nn.Param, t *tensor.Tensor) item {
	v := make([]float64, t.Len())
	o.dev.Download(v, t)
	h := uint64(0xcbf29ce484222325) // FNV-1a, a word at a time
	for _, x := range v {
		h = (h ^ math.Float64bits(x)) * 0x100000001b3
		h ^= h >> 29
	}
	return item{what + " of " + p.Name, float64(h >> 11)}
}

// same gathers the members' sums and compares them; all members come to the same verdict.
func (o *Optimizer) same(ctx context.Context, g *comm.Group, items []item) error {
	if len(items) == 0 || g.Size() == 1 {
		return nil
	}
	n := len(items)
	mine, all := o.dev.Heap().New(tensor.Workspace, tensor.F64, n), o.dev.Heap().New(tensor.Workspace, tensor.F64, n*g.Size())
	defer mine.Release()
	defer all.Release()
	sums := make([]float64, n)
	for i, it := range items {
		sums[i] = it.sum
	}
	o.dev.Upload(mine, sums)
	if err := g.AllGather(ctx, o.dev, all, mine); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	got := make([]float64, all.Len())
	o.dev.Download(got, all)
	for i, it := range items {
		var odd []string
		for place, rank := range g.Ranks() {
			if got[place*n+i] != got[i] {
				odd = append(odd, fmt.Sprint(rank))
			}
		}
		if len(odd) > 0 {
			return &Unequal{What: it.name, Ranks: g.Ranks(), Text: fmt.Sprintf(
				"%s differs between ranks %v, which hold copies of it: rank %s is unlike rank %d", it.name, g.Ranks(), strings.Join(odd, ", "), g.Ranks()[0])}
		}
	}
	return nil
}

// Unequal is a failed check: copies that are not equal.
type Unequal struct {
	What  string // "weight of blocks.0.mlp.up.weight"
	Ranks []int
	Text  string
}

func (e *Unequal) Error() string { return "verify: " + e.Text }
