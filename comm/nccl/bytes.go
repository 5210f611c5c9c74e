package nccl

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"triax/tensor"
)

// bytesOf is a copy of a tensor in host memory, little-endian.
func bytesOf(t *tensor.Tensor) ([]byte, error) {
	switch t.Data().(type) {
	case []float32, []float64, []int32, []uint16:
		return binary.Append(nil, binary.LittleEndian, t.Data())
	}
	return nil, fmt.Errorf("%v is not in host memory", t)
}

// setBytes is the inverse.
func setBytes(t *tensor.Tensor, b []byte) error {
	return binary.Read(bytes.NewReader(b), binary.LittleEndian, t.Data())
}
