package local

import (
	"fmt"
	"strings"

	"triax/comm"
	"triax/tensor"
)

// call is one member's side of a collective.
type call struct {
	kind     comm.CallKind
	op       comm.Op
	root     int
	dst, src *tensor.Tensor // nil for a barrier; the same one where the call works in place
}

// verdict compares what the members call. It is the same on all members, so that none goes on alone.
func (g *group) verdict() error {
	sound := true
	for i := range g.calls {
		c := &g.calls[i]
		sound = sound && c.like(&g.calls[0]) && c.fault(len(g.calls)) == ""
	}
	if sound {
		return nil
	}
	each := make([]string, len(g.calls))
	for i := range g.calls {
		each[i] = fmt.Sprintf("rank %d calls %v", g.ranks[i], &g.calls[i])
		if fault := g.calls[i].fault(len(g.calls)); fault != "" {
			each[i] += " (" + fault + ")"
		}
	}
	return fmt.Errorf("group %s: the calls do not fit together: %s", g.name, strings.Join(each, "; "))
}

func (c *call) like(d *call) bool {
	if c.kind != d.kind || c.op != d.op || c.root != d.root {
		return false
	}
	return c.src == nil || (c.src.Len() == d.src.Len() && c.src.DType == d.src.DType)
}

// fault is what is wrong with a call by itself, among size members; "" when nothing is.
func (c *call) fault(size int) string {
	if c.src == nil || c.dst == nil {
		if c.kind == comm.KindBarrier {
			return ""
		}
		return "a tensor is nil"
	}
	if c.src.DType != c.dst.DType {
		return fmt.Sprintf("the result is %v", c.dst)
	}
	if !inHost(c.src) || !inHost(c.dst) {
		return "the memory is not this process's"
	}
	want := c.src.Len()
	switch c.kind {
	case comm.KindAllReduce, comm.KindReduceScatter:
		if c.src.DType == tensor.I32 {
			return "reductions work on floats"
		}
		if c.kind == comm.KindReduceScatter {
			want = c.dst.Len()
			if c.src.Len() != want*size {
				return fmt.Sprintf("the result is %v, and %d members", c.dst, size)
			}
		}
	case comm.KindAllGather:
		want *= size
	case comm.KindAllToAll:
		if want%size != 0 {
			return fmt.Sprintf("not a multiple of %d members", size)
		}
	case comm.KindBroadcast:
		if c.root < 0 || c.root >= size {
			return fmt.Sprintf("no such place among %d members", size)
		}
	}
	if c.dst.Len() != want {
		return fmt.Sprintf("the result is %v, want %d elements", c.dst, want)
	}
	return ""
}

func inHost(t *tensor.Tensor) bool {
	switch t.Data().(type) {
	case []float32, []float64, []int32, []uint16:
		return true
	}
	return false
}

// String prints "all_reduce of 12 float32".
func (c *call) String() string {
	s := string(c.kind)
	if c.op == comm.Max {
		s += " of the maximum"
	}
	if c.src != nil {
		s += fmt.Sprintf(" of %d %v", c.src.Len(), c.src.DType)
	}
	if c.kind == comm.KindBroadcast {
		s += fmt.Sprintf(" from place %d", c.root)
	}
	return s
}
