package comm

import (
	"fmt"
	"strings"

	"triax/tensor"
)

// Terms is one member's side of a collective: what all members compare before they start, on transports that are ranks of
// other processes.
type Terms struct {
	Step
	Result     int // elements of the result
	ResultType tensor.DType
	Foreign    bool // a tensor is not in the transport's memory
}

// TermsOf is the terms of a call; own tells the transport's memory. dst and src are nil for a barrier.
func TermsOf(kind CallKind, op Op, root int, dst, src *tensor.Tensor, own func(*tensor.Tensor) bool) Terms {
	t := Terms{Step: Step{Kind: kind, Op: op, Root: root}}
	if src != nil {
		t.DType, t.Len, t.Result, t.ResultType = src.DType, src.Len(), dst.Len(), dst.DType
		t.Foreign = !own(src) || !own(dst)
	}
	return t
}

// Agree compares what the members of a group call. It is the same on all members, so that none goes on alone.
func Agree(name string, ranks []int, all []Terms) error {
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
func (t Terms) fault(size int) string {
	if t.DType != t.ResultType {
		return fmt.Sprintf("the result is %v", t.ResultType)
	}
	if t.Foreign {
		return "the memory is not this process's"
	}
	want := t.Len
	switch t.Kind {
	case KindAllReduce, KindReduceScatter:
		if t.DType == tensor.I32 {
			return "reductions work on floats"
		}
		if t.Kind == KindReduceScatter {
			if t.Len != t.Result*size {
				return fmt.Sprintf("the result is %d elements, and %d members", t.Result, size)
			}
			want = t.Result
		}
	case KindAllGather:
		want *= size
	case KindAllToAll:
		if want%size != 0 {
			return fmt.Sprintf("not a multiple of %d members", size)
		}
	case KindBroadcast:
		if t.Root < 0 || t.Root >= size {
			return fmt.Sprintf("no such place among %d members", size)
		}
	}
	if t.Result != want {
		return fmt.Sprintf("the result is %d elements, want %d", t.Result, want)
	}
	return ""
}
