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

// Source gives the values that training starts from.
type Source interface {
	// Values fills dst with the logical elements first, first+1, ... of a parameter, in the order of the whole one. Several
	// goroutines call it at once.
	Values(dst []float64, p *Param, first int) error
}

// StateSource is a Source that also has the optimizer's states: what a run goes on from.
type StateSource interface {
	Source
	StateSource(name string) (Source, error)
}

// Seed is the Source of a fresh model: Init's values.
type Seed uint64

// Values never fails.
func (s Seed) Values(dst []float64, p *Param, first int) error {
	p.Init.Values(dst, uint64(s), p.Name, first)
	return nil
}

// Fill sets p.Data to the starting values of the part held here. Padding becomes zero.
func Fill(dev tensor.Device, p *Param, seed uint64) {
	if p.Data == nil {
		panic(fmt.Sprintf("nn: %s has no memory to fill", p.Name))
	}
	if err := FillPart(dev, p.Data.View(p.Len()), p, 0, p.Len(), Seed(seed)); err != nil {
		panic(err) // a seed has a value for everything
	}
}

// FillPart sets dst [hi-lo] to the values of elements lo up to hi of p's local memory, and asks the source for no others. Padding becomes
// zero. Host memory beside dst is bounded, whatever the size.
func FillPart(dev tensor.Device, dst *tensor.Tensor, p *Param, lo, hi int, from Source) error {
	dev.Zero(dst)
	buf := make([]float64, 0, min(fillChunk, hi-lo))
	at := 0 // where buf begins in the local memory
	flush := func() {
		if len(buf) > 0 {
			dev.Upload(dst.Flat(at-lo, at-lo+len(buf)), buf)
			buf = buf[:0]
		}
	}
	for r := range p.Runs {
		skip := max(0, lo-r.Local)
		for done, end := skip, min(r.Len, hi-r.Local); done < end; {
			if len(buf) == cap(buf) || at+len(buf) != r.Local+done {
				flush()
				at = r.Local + done
			}
			n := min(end-done, cap(buf)-len(buf))
			part := buf[len(buf) : len(buf)+n]
			if err := from.Values(part, p, r.Logical+done); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			buf = buf[:len(buf)+n]
			done += n
		}
	}
	flush()
	return nil
}
