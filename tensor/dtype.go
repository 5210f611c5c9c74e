package tensor

import "fmt"

// DType is the type of a tensor's elements.
type DType uint8

const (
	F32  DType = iota // IEEE binary32
	F64               // IEEE binary64
	I32               // int32: token ids, positions
	BF16              // the upper half of a binary32, stored as uint16
)

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case F64:
		return 8
	case BF16:
		return 2
	default:
		return 4
	}
}

// Accum is the type that sums of such elements are kept in: gradients, optimizer states, statistics of rows. float32 for
// bfloat16, whose 8 bits lose what is small beside the sum; else the type itself.
func (d DType) Accum() DType {
	if d == BF16 {
		return F32
	}
	return d
}

// String is the type's name as configurations write it.
func (d DType) String() string {
	switch d {
	case F32:
		return "float32"
	case F64:
		return "float64"
	case I32:
		return "int32"
	case BF16:
		return "bfloat16"
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}
