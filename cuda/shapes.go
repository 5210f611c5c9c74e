package cuda

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
	for _, t := range ts {
		demand(t.Len() == ts[0].Len(), op, ts...)
	}
	return ts[0].Len()
}

// demand panics when ok is false.
func demand(ok bool, op string, ts ...*tensor.Tensor) {
	if !ok {
		wrongShapes(op, ts...)
	}
}

func wrongShapes(op string, ts ...*tensor.Tensor) {
	panic(fmt.Sprintf("cuda: %s: shapes or types do not fit: %v", op, slices.Clone(ts)))
}

// parts is how many parts of the given size n falls into.
func parts(n, size int) int { return (n + size - 1) / size }
