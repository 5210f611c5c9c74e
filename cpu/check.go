package cpu

import (
	"fmt"
	"slices"

	"triax/tensor"
)

// rowsOf and colsOf see a tensor as a matrix: all dims but the last are rows.
func rowsOf(t *tensor.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return tensor.Elements(t.Shape[:len(t.Shape)-1]...)
}

func colsOf(t *tensor.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// sameLen panics when tensors differ in length.
func sameLen(op string, ts ...*tensor.Tensor) int {
	n := ts[0].Len()
	for _, t := range ts {
		if t.Len() != n {
			wrongShapes(op, ts...)
		}
	}
	return n
}

// demand panics when ok is false.
func demand(ok bool, op string, ts ...*tensor.Tensor) {
	if !ok {
		wrongShapes(op, ts...)
	}
}

func wrongShapes(op string, ts ...*tensor.Tensor) {
	// A copy goes into the message, so that callers' lists stay on their stacks.
	panic(fmt.Sprintf("cpu: %s: shapes do not fit: %v", op, slices.Clone(ts)))
}
