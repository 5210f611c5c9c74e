package nn

import (
	"fmt"

	"triax/tensor"
)

// fillChunk bounds the host memory that Fill needs.
const fillChunk = 1 << 16

// Values fills dst with the starting values of logical elements first, first+1, ... of a parameter: a function of the
// seed, the name and the element, so a slice of any mesh gets what the whole model has there.
func (in Init) Values(dst []float64, seed uint64, name string, first int) {
	if in.Std == 0 {
		for i := range dst {
			dst[i] = in.Mean
		}
		return
	}
	normals(dst, tensor.Bits(seed, hash(name)), first)
	for i, x := range dst {
		dst[i] = in.Mean + in.Std*x
	}
}

// Fill sets p.Data to the starting values of the part held here. Padding becomes zero.
func Fill(dev tensor.Device, p *Param, seed uint64) {
	if p.Data == nil {
		panic(fmt.Sprintf("nn: %s has no memory to fill", p.Name))
	}
	dev.Zero(p.Data)
	buf := make([]float64, 0, fillChunk)
	at := 0 // where buf begins in the local memory
	flush := func() {
		if len(buf) > 0 {
			dev.Upload(p.Data.Flat(at, at+len(buf)), buf)
			buf = buf[:0]
		}
	}
	for r := range p.Runs {
		for done := 0; done < r.Len; {
			if len(buf) == cap(buf) || at+len(buf) != r.Local+done {
				flush()
				at = r.Local + done
			}
			n := min(r.Len-done, cap(buf)-len(buf))
			part := buf[len(buf) : len(buf)+n]
			p.Init.Values(part, seed, p.Name, r.Logical+done)
			buf = buf[:len(buf)+n]
			done += n
		}
	}
	flush()
}
