package zero

import (
	"fmt"

	"triax/comm"
	"triax/nn"
	"triax/optim"
	"triax/tensor"
)

// Optimizer owns the memory of a rank's parameters, gradients and optimizer state, and shares it out
// over the data axis as the ZeRO stage says. It is the only place where gradients are reduced over replicas.
//
// The life of a step, per unit (layer): Gather, forward, FreeAfterForward; Gather, input backward,
// FreeAfterBackward; OpenGrad, weight backward, CloseGrad; then Reduce for each virtual stage and one Step.
// With overlap all communication along the data axes goes through one stream, in the order in which it is asked for, which is
// the same on all members because they walk the same schedule.
type Optimizer struct {
	cfg     Config
	dev     tensor.Device
	rule    optim.Rule
	groups  Groups
	units   []Unit
	buckets []*bucket
	learned []*bucket    // those that are not frozen
	of      [][]*bucket  // buckets of each unit
	learns  [][]*bucket  // those of them that are not frozen
	done    []bool       // units whose last gradient of the step has been added
	flights []flight     // reduce-scatters under way, oldest first
	aloft   int64        // their elements
	stream  *comm.Stream // nil without overlap
	disk    *disk        // nil where optimizer state is in memory

	// Check makes every step compare gradients that must be equal, before they are used.
	Check bool

	replicas *comm.Group // groups.Replicas

	// Observe, when set, sees every piece of gradient that this rank owns, after all sums and before
	// clipping and update. Pieces of replicas along other axes are seen by each of them.
	Observe func(p *nn.Param, lo int, grad *tensor.Tensor)
}

// Groups are the sets of ranks that an Optimizer talks to.
type Groups struct {
	Shards   *comm.Group // the data axis that shards are cut over
	Replicas *comm.Group // outer data axis of hybrid sharding, over which shards are repeated
	Data     *comm.Group // both together
	// The same for experts, which ranks along the expert axis do not share; nil where there are none.
	ExpertShards, ExpertData *comm.Group
	World                    *comm.Group // all ranks, for the global norm
	Tied                     *comm.Group // the pipeline ranks that hold copies of the tied table; nil on all others
	// Span is the group of an extra gradient sum.
	Span func(nn.Span) *comm.Group
}

func (g Groups) shards(expert bool) *comm.Group {
	if expert {
		return g.ExpertShards
	}
	return g.Shards
}

// shards is the group over which a bucket is cut, data the one over which it is replicated.
func (o *Optimizer) shards(b *bucket) *comm.Group { return o.groups.shards(b.expert) }

// lane is where calls on a group run: the stream, or at once where the group is this rank alone and the call is a copy, since a
// device computes for one goroutine at a time.
func (o *Optimizer) lane(g *comm.Group) *comm.Stream {
	if g.Size() == 1 {
		return nil
	}
	return o.stream
}

func (o *Optimizer) data(b *bucket) *comm.Group {
	if b.expert {
		return o.groups.ExpertData
	}
	return o.groups.Data
}

// New makes the memory of all units' parameters and fills in starting weights from their source, each rank asking for its part only. It
// fails where the source does, or files for offloaded state cannot be made.
func New(cfg Config, dev tensor.Device, rule optim.Rule, groups Groups, units []Unit, from nn.Source) (*Optimizer, error) {
	o := &Optimizer{
		cfg: cfg, dev: dev, rule: rule, groups: groups, units: units, done: make([]bool, len(units)),
		replicas: groups.Replicas,
	}
	if cfg.Offload == OffloadDisk {
		o.disk = &disk{dir: cfg.OffloadDir}
	}
	if cfg.Overlap {
		o.stream = comm.NewStream()
	}
	o.buckets, o.of = partition(units, cfg, func(expert bool) int { return groups.shards(expert).Size() })
	o.learned = learning(o.buckets)
	for _, list := range o.of {
		o.learns = append(o.learns, learning(list))
	}
	for _, b := range o.buckets {
		if err := o.open(b, from); err != nil {
			o.Close()
			return nil, err
		}
	}
	return o, nil
}

// Close gives all memory back. When a step has failed, its ctx must have ended.
func (o *Optimizer) Close() {
	o.stream.Close()
	for _, b := range o.buckets {
		m := &b.mem
		tensors := append([]*tensor.Tensor{m.data, m.master}, m.state...) // those in files have no count
		if o.cfg.Stage == 3 {
			tensors = append(tensors, m.shard)
		}
		if o.cfg.Stage < 2 {
			tensors = append(tensors, m.grad)
		}
		if o.cfg.Stage >= 2 {
			tensors = append(tensors, m.sum)
		}
		for _, t := range tensors {
			t.Release()
		}
		b.mem = memory{}
		b.attach()
	}
	if o.disk != nil {
		if err := o.disk.close(); err != nil {
			panic(fmt.Sprintf("zero: files of offloaded state: %v", err)) // only a wrong address or length can fail
		}
	}
}

// learning leaves out the frozen ones.
func learning(list []*bucket) (out []*bucket) {
	for _, b := range list {
		if !b.frozen {
			out = append(out, b)
		}
	}
	return out
}
