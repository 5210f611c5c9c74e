package plan

import (
	"triax/mesh"
	"triax/schedule"
)

// outer is the outermost link that a group's ring crosses, or -1 for a group of one. Inner links carry the same ring at the outer one's pace, which leaves
// most of them free.
func (s span) outer() int {
	for i := len(s.per) - 1; i >= 0; i-- {
		inner := 1
		if i > 0 {
			inner = s.per[i-1]
		}
		if s.per[i] > inner {
			return i
		}
	}
	return -1
}

// room is for how long an op leaves the data axes' link to them: its computation, less what other axes send over the same link meanwhile. Links are
// full-duplex: a message that goes and one that comes take its time once.
func (k *clock) room(kind schedule.Kind, compute, hiddenTensor float64) float64 {
	data := k.spans["data"].outer()
	if k.spans["tp"].outer() == data {
		compute -= hiddenTensor
	}
	if kind != schedule.W && k.mesh.Degree(mesh.PP) > 1 && k.spans["tied"].outer() == data {
		occupancy, _ := k.message()
		compute -= occupancy
	}
	return max(0, compute)
}

// message is a pipeline message between two ranks.
func (k *clock) message() (occupancy, latency float64) {
	return k.c.Message(float64(messageBytes(k.cfg, int64(k.c.element()))), k.mesh, mesh.PP)
}

// exposed is what of a communication on the data axes does not fit into its room.
func (k *clock) exposed(t, room float64) float64 {
	if !k.cfg.Zero.Overlap {
		return t
	}
	return max(0, t-room)
}

// exposedTensor is what of the tensor axis' communication computation does not hide. With mesh.tp_overlap, sums of input gradients run beside
// weight gradients, which are half of backward; where the cluster's software cuts products into parts (TensorHidden), forward hides some too.
func (k *clock) exposedTensor(kind schedule.Kind, t, compute float64) float64 {
	if !k.cfg.Mesh.TPOverlap {
		return t
	}
	if h := k.c.TensorHidden; h > 0 {
		return t - h*min(t, compute)
	}
	if kind == schedule.B {
		return t - min(t, compute/2)
	}
	return t
}

// unhidden is what of a stage's reduction is left when its last backward ends: with overlap each layer's starts as soon as its gradients are there, so at
// least the last layer's.
func (k *clock) unhidden(stage int, t float64) float64 {
	if !k.cfg.Zero.Overlap {
		return t
	}
	back := max(k.costs[stage][schedule.B].room, k.costs[stage][schedule.W].room)
	return max(t/float64(max(1, len(k.stages[stage].layers))), t-back)
}
