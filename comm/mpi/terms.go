//go:build cgo && linux

package mpi

import (
	"encoding/binary"
	"slices"

	"triax/comm"
	"triax/tensor"
)

// termsSize is the room of terms on the wire: eight words.
const termsSize = 64

var kinds = []comm.CallKind{comm.KindBarrier, comm.KindAllReduce, comm.KindReduceScatter, comm.KindAllGather, comm.KindBroadcast, comm.KindAllToAll}

func termsOf(kind comm.CallKind, op comm.Op, root int, dst, src *tensor.Tensor) comm.Terms {
	return comm.TermsOf(kind, op, root, dst, src, inHost)
}

func inHost(t *tensor.Tensor) bool {
	switch t.Data().(type) {
	case []float32, []float64, []int32, []uint16:
		return true
	}
	return false
}

func putTerms(to []byte, t comm.Terms) {
	foreign := uint64(0)
	if t.Foreign {
		foreign = 1
	}
	kind := uint64(slices.Index(kinds, t.Kind))
	for i, x := range []uint64{kind, uint64(t.DType), uint64(t.Len), uint64(t.Op), uint64(t.Root), uint64(t.Result), uint64(t.ResultType), foreign} {
		binary.LittleEndian.PutUint64(to[8*i:], x)
	}
}

func readTerms(from []byte) comm.Terms {
	var x [8]uint64
	for i := range x {
		x[i] = binary.LittleEndian.Uint64(from[8*i:])
	}
	t := comm.Terms{Result: int(x[5]), ResultType: tensor.DType(x[6]), Foreign: x[7] != 0}
	t.Step = comm.Step{DType: tensor.DType(x[1]), Len: int(x[2]), Op: comm.Op(x[3]), Root: int(x[4])}
	if x[0] < uint64(len(kinds)) {
		t.Kind = kinds[x[0]]
	}
	return t
}
