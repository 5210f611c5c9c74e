package zero

import (
	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// memory is what a rank holds of a bucket. n is the padded length, s = n / shards.
//
//	ZeRO stage   data   shard       grad       sum
//	0            n      part of it  n          all of grad
//	1            n      part        n          s, between R and U
//	2            n      part        n, during W   s
//	3            n, between gather and free   s   n, during W   s
//
// Where parameters are bfloat16, gradients and states are float32, and this rank's part has a float32 master copy that is what is
// updated, checked and saved: steps smaller than half a unit in the last of bfloat16's 8 bits must add up (Micikevicius et al. 2018, §3.1).
type memory struct {
	data    *tensor.Tensor   // whole parameters; nil while freed
	shard   *tensor.Tensor   // this rank's part of the parameters
	master  *tensor.Tensor   // the same in the type of sums; nil where shard is of that type, or does not learn
	grad    *tensor.Tensor   // whole local gradients; nil while not accumulating
	sum     *tensor.Tensor   // gradients summed over the shard group, for this rank's part
	state   []*tensor.Tensor // optimizer state for this rank's part
	users   int              // how many gathers are not yet freed
	left    int              // uses still to come before the gradient of this microbatch is whole
	reduced *comm.Pending    // ends when sum holds this step's final gradients; nil before it was started
	coming  *comm.Pending    // ends when data holds the gathered parameters
}

// bounds is this rank's part of the bucket: all of it at stage 0.
func (o *Optimizer) bounds(b *bucket) (lo, hi int) {
	if o.cfg.Stage == 0 {
		return 0, b.padded
	}
	g := o.shards(b)
	s := b.padded / g.Size()
	return g.Place() * s, (g.Place() + 1) * s
}

// attach points the parameters at the bucket's whole memory, or detaches them.
func (b *bucket) attach() {
	for i, p := range b.params {
		p.Data, p.Grad = nil, nil
		if b.mem.data != nil {
			p.Data = b.mem.data.Part(b.offset[i], b.offset[i]+p.Len(), p.Local...)
		}
		if b.mem.grad != nil {
			p.Grad = b.mem.grad.Part(b.offset[i], b.offset[i]+p.Len(), p.Local...)
		}
	}
}

// open makes the lasting memory of a bucket and fills in the starting weights: at stage 3 of this rank's part, nothing more.
func (o *Optimizer) open(b *bucket, from nn.Source) error {
	m := &b.mem
	lo, hi := o.bounds(b)
	if o.cfg.Stage == 3 {
		m.shard = o.zeros(tensor.Parameters, o.dev.Float(), hi-lo)
		if err := o.fillWeights(b, m.shard, lo, hi, from); err != nil {
			return err
		}
	} else {
		m.data = o.zeros(tensor.Parameters, o.dev.Float(), b.padded)
		m.shard = m.data.Flat(lo, hi)
		if err := o.fillWeights(b, m.data, 0, b.padded, from); err != nil {
			return err
		}
	}
	if b.frozen {
		b.attach()
		return nil
	}
	switch o.cfg.Stage {
	case 0:
		m.grad = o.zeros(tensor.Gradients, o.accum(), b.padded)
		m.sum = m.grad
	case 1:
		m.grad = o.zeros(tensor.Gradients, o.accum(), b.padded)
	default:
		m.sum = o.zeros(tensor.Gradients, o.accum(), hi-lo)
	}
	b.attach()
	if err := o.openStates(b, lo, hi, from); err != nil {
		return err
	}
	return o.fillStates(b, lo, hi, from)
}

// openStates makes the bucket's optimizer states, and the master copy with the same values as the weights had before they were rounded.
func (o *Optimizer) openStates(b *bucket, lo, hi int, from nn.Source) error {
	m := &b.mem
	for range o.rule.States() {
		s, err := o.newState(hi - lo)
		if err != nil {
			return err
		}
		m.state = append(m.state, s)
	}
	if o.accum() == o.dev.Float() {
		return nil
	}
	var err error
	if m.master, err = o.newState(hi - lo); err != nil {
		return err
	}
	if err := o.fill(b, m.master, lo, hi, from); err != nil || o.disk == nil {
		return err
	}
	return o.disk.drop(m.master, 0, hi-lo)
}

// accum is the type of gradients, states and master copies.
func (o *Optimizer) accum() tensor.DType { return o.dev.Float().Accum() }

// weights is what updates are made to: the master copy where there is one.
func (m *memory) weights() *tensor.Tensor {
	if m.master != nil {
		return m.master
	}
	return m.shard
}

// fillStates sets the optimizer states where the source has them; else they stay zero.
func (o *Optimizer) fillStates(b *bucket, lo, hi int, from nn.Source) error {
	all, ok := from.(nn.StateSource)
	if !ok {
		return nil
	}
	for i, name := range o.rule.StateNames() {
		s, err := all.StateSource(name)
		if err == nil {
			err = o.fill(b, b.mem.state[i], lo, hi, s)
		}
		if err == nil && o.disk != nil {
			err = o.disk.drop(b.mem.state[i], 0, hi-lo)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill sets dst to elements lo up to hi of the bucket.
func (o *Optimizer) fill(b *bucket, dst *tensor.Tensor, lo, hi int, from nn.Source) error {
	for _, p := range b.pieces(lo, hi) {
		if err := nn.FillPart(o.dev, dst.Flat(p.at-lo, p.at-lo+p.hi-p.lo), p.param, p.lo, p.hi, from); err != nil {
			return err
		}
	}
	return nil
}

// fillWeights is fill for weights that may be of a narrower type than their master copy: they are rounded to that first, as
// updated ones are, so that every rank has the same bits wherever they come from. A window at a time.
func (o *Optimizer) fillWeights(b *bucket, dst *tensor.Tensor, lo, hi int, from nn.Source) error {
	if o.accum() == o.dev.Float() {
		return o.fill(b, dst, lo, hi, from)
	}
	wide := o.dev.Heap().New(tensor.Workspace, o.accum(), min(window, hi-lo))
	defer wide.Release()
	for at := lo; at < hi; at += window {
		end := min(hi, at+window)
		part := wide.Flat(0, end-at)
		o.dev.Zero(part)
		if err := o.fill(b, part, at, end, from); err != nil {
			return err
		}
		o.dev.Copy(dst.Flat(at-lo, end-lo), part)
	}
	return nil
}

func (o *Optimizer) zeros(kind tensor.Kind, dtype tensor.DType, n int) *tensor.Tensor {
	t := o.dev.Heap().New(kind, dtype, n)
	o.dev.Zero(t)
	return t
}
