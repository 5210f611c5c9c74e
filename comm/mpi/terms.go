//go:build cgo && linux

package mpi

import (
	"encoding/binary"
	"fmt"
	"strings"

	"triax/comm"
	"triax/tensor"
)

// terms is one member's side of a collective: what all members compare before they start.
type terms struct {
	comm.Step
	kind   uint64 // Step.Kind as a number
	result int    // elements of the result
	rtype  tensor.DType
	bare   bool // a tensor that is not in this process's memory
}

// termsSize is the room of terms on the wire: eight words.
const termsSize = 64

var kinds = []comm.CallKind{comm.KindBarrier, comm.KindAllReduce, comm.KindReduceScatter, comm.KindAllGather, comm.KindBroadcast, comm.KindAllToAll}

func termsOf(kind comm.CallKind, op comm.Op, root int, dst, src *tensor.Tensor) terms {
	t := terms{Step: comm.Step{Kind: kind, Op: op, Root: root}}
	if src != nil {
		t.DType, t.Len, t.result, t.rtype = src.DType, src.Len(), dst.Len(), dst.DType
		t.bare = !inHost(src) || !inHost(dst)
	}
	for i, k := range kinds {
		if k == kind {
			t.kind = uint64(i)
		}
	}
	return t
}

func inHost(t *tensor.Tensor) bool {
	switch t.Data().(type) {
	case []float32, []float64, []int32, []uint16:
		return true
	}
	return false
}

func (t terms) put(to []byte) {
	bare := uint64(0)
	if t.bare {
		bare = 1
	}
	for i, x := range []uint64{t.kind, uint64(t.DType), uint64(t.Len), uint64(t.Op), uint64(t.Root), uint64(t.result), uint64(t.rtype), bare} {
		binary.LittleEndian.PutUint64(to[8*i:], x)
	}
}

func readTerms(from []byte) terms {
	var x [8]uint64
	for i := range x {
		x[i] = binary.LittleEndian.Uint64(from[8*i:])
	}
	t := terms{kind: x[0], result: int(x[5]), rtype: tensor.DType(x[6]), bare: x[7] != 0}
	t.Step = comm.Step{DType: tensor.DType(x[1]), Len: int(x[2]), Op: comm.Op(x[3]), Root: int(x[4])}
	if x[0] < uint64(len(kinds)) {
		t.Kind = kinds[x[0]]
	}
	return t
}

// verdict compares what the members call. It is the same on all members, so that none goes on alone.
func verdict(name string, ranks []int, all []terms) error {
	sound := true
	for _, t := range all {
		sound = sound && t.Step == all[0].Step && t.fault(len(all)) == ""
	}
	if sound {
		return nil
	}
	each := make([]string, len(all))
	for i, t := range all {
		each[i] = fmt.Sprintf("rank %d calls %v", ranks[i], t.Step)
		if fault := t.fault(len(all)); fault != "" {
			each[i] += " (" + fault + ")"
		}
	}
	return fmt.Errorf("group %s: the calls do not fit together: %s", name, strings.Join(each, "; "))
}

// fault is what is wrong with a call by itself, among size members; "" when nothing is.
func (t terms) fault(size int) string {
	if t.DType != t.rtype {
		return fmt.Sprintf("the result is %v", t.rtype)
	}
	if t.bare {
		return "the memory is not this process's"
	}
	want := t.Len
	switch t.Kind {
	case comm.KindAllReduce, comm.KindReduceScatter:
		if t.DType == tensor.I32 {
			return "reductions work on floats"
		}
		if t.Kind == comm.KindReduceScatter {
			if t.Len != t.result*size {
				return fmt.Sprintf("the result is %d elements, and %d members", t.result, size)
			}
			want = t.result
		}
	case comm.KindAllGather:
		want *= size
	case comm.KindAllToAll:
		if want%size != 0 {
			return fmt.Sprintf("not a multiple of %d members", size)
		}
	case comm.KindBroadcast:
		if t.Root < 0 || t.Root >= size {
			return fmt.Sprintf("no such place among %d members", size)
		}
	}
	if t.result != want {
		return fmt.Sprintf("the result is %d elements, want %d", t.result, want)
	}
	return ""
}
