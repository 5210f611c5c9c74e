package train

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"triax/checkpoint"
	"triax/checkpoint/safetensors"
	"triax/nn"
	"triax/tensor"
)

// snapshot copies what this rank owns of the model and of its optimizer's states, padding left out. The memory of an earlier snapshot
// is used again: fresh memory costs more than the copy.
func (w *Worker) snapshot(earlier []checkpoint.Blob) ([]checkpoint.Blob, error) {
	out := make([]checkpoint.Blob, 0, len(earlier))
	names := w.opt.StateNames()
	for piece := range w.opt.Owned {
		kinds, tensors := []string{checkpoint.Weight}, []*tensor.Tensor{piece.Weight}
		for i, s := range piece.State {
			kinds, tensors = append(kinds, names[i]), append(tensors, s)
		}
		stretch := checkpoint.StretchOf(piece.Param, piece.Lo, piece.Hi)
		for i, t := range tensors {
			var room []byte
			if i := len(out); i < len(earlier) {
				room = earlier[i].Raw
			}
			dtype, raw, err := copyOut(room, w.dev, t, piece.Param, piece.Lo)
			if err != nil {
				return nil, err
			}
			out = append(out, checkpoint.Blob{Kind: kinds[i], Stretch: stretch, DType: dtype, Raw: raw})
		}
	}
	return out, nil
}

var storedAs = map[tensor.DType]safetensors.DType{tensor.F32: safetensors.F32, tensor.F64: safetensors.F64, tensor.BF16: safetensors.BF16}

// copyOut is the bytes of t, which is elements from lo on of p's local memory, without padding; in room where that is enough.
func copyOut(room []byte, dev tensor.Device, t *tensor.Tensor, p *nn.Param, lo int) (safetensors.DType, []byte, error) {
	dtype, ok := storedAs[t.DType]
	if !ok {
		return "", nil, fmt.Errorf("checkpoint: %v of %s cannot be stored", t.DType, p.Name)
	}
	size := dtype.Size()
	raw := room[:0]
	if cap(raw) < t.Len()*size {
		raw = make([]byte, 0, t.Len()*size)
	}
	for r := range p.Runs {
		from, to := max(0, r.Local-lo), min(t.Len(), r.Local+r.Len-lo)
		if from >= to {
			continue
		}
		part := t.Flat(from, to)
		if b := hostBytes(part); b != nil {
			raw = append(raw, b...)
			continue
		}
		values := make([]float64, to-from)
		dev.Download(values, part)
		at := len(raw)
		raw = raw[:at+len(values)*size]
		dtype.Put(raw[at:], values)
	}
	return dtype, raw, nil
}

// hostBytes is the memory itself where it is this machine's and little-endian; else nil.
func hostBytes(t *tensor.Tensor) []byte {
	if t.Len() == 0 || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil
	}
	switch d := t.Data().(type) {
	case []float32:
		return unsafe.Slice((*byte)(unsafe.Pointer(&d[0])), 4*len(d))
	case []float64:
		return unsafe.Slice((*byte)(unsafe.Pointer(&d[0])), 8*len(d))
	case []uint16:
		return unsafe.Slice((*byte)(unsafe.Pointer(&d[0])), 2*len(d))
	}
	return nil
}
