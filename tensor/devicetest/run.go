package devicetest

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"triax/tensor"
)

// Run examines the devices that open makes. tol is the largest error allowed, as a share of the
// largest element of the reference: 1e-12 suits float64, 1e-5 float32, 2^-6 bfloat16, whose last bit is 2^-8,
// for results that are made of rounded results.
// The inputs' seed is printed on failure; TRIAX_SEED=n repeats a run.
func Run(t *testing.T, open func(t *testing.T) tensor.Device, tol float64) {
	levels := []struct {
		name string
		test func(b *bench)
	}{
		{"memory/copy", copies}, {"memory/views", views}, {"matrix/gemm", gemms},
		{"elementwise/add", sums}, {"elementwise/bias", biases}, {"elementwise/gelu", gelus},
		{"elementwise/swiglu", swiglus}, {"elementwise/rope", ropes}, {"elementwise/rows", rowwises}, {"elementwise/dropout", dropouts},
		{"normal/layernorm", layerNorms}, {"normal/rmsnorm", rmsNorms},
		{"attend/shapes", attentions}, {"attend/differences", attentionDifferences}, {"attend/range", attentionRange}, {"attend/merge", attentionMerges},
		{"lookup/embed", embeds}, {"loss/whole", losses}, {"loss/vocabularyParallel", shardedLosses},
		{"update/adamw", adamws}, {"update/sgd", sgds}, {"update/sumsquares", sumSquares},
	}
	seed := runSeed(t)
	for _, l := range levels {
		t.Run(l.name, func(t *testing.T) {
			dev := open(t)
			defer dev.Close()
			b := &bench{T: t, dev: dev, tol: tol, rng: rand.New(rand.NewPCG(seed, 0))}
			defer func() {
				if t.Failed() {
					t.Logf("repeat with TRIAX_SEED=%d", seed)
				}
			}()
			l.test(b)
			b.free()
			if b.worst.what != "" {
				t.Logf("%s: worst error %.2g of the largest element, %.2g allowed: %s", dev.Name(), b.worst.error, b.worst.allowed, b.worst.what)
			}
			if err := dev.Sync(); err != nil {
				t.Error(err)
			}
			if left := dev.Heap().Total().Now; left != 0 {
				t.Errorf("%d bytes never given back", left)
			}
		})
	}
}

func runSeed(t *testing.T) uint64 {
	s := os.Getenv("TRIAX_SEED")
	if s == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("TRIAX_SEED: %v", err)
	}
	return seed
}

// bench is where one device is examined.
type bench struct {
	*testing.T
	dev  tensor.Device
	rng  *rand.Rand
	tol  float64
	held []*held

	worst struct { // the error that came nearest to what is allowed
		what           string
		error, allowed float64
	}
}

// held is a tensor inside a guarded block.
type held struct {
	block, part *tensor.Tensor
	before      int
}

// put makes a tensor of the given values between guards of NaN.
func (b *bench) put(values []float64, shape ...int) *tensor.Tensor {
	return b.putAs(b.dev.Float(), values, shape...)
}

// The same three in the type of sums.

func (b *bench) putSum(values []float64, shape ...int) *tensor.Tensor {
	return b.putAs(b.dev.Float().Accum(), values, shape...)
}

func (b *bench) blankSum(shape ...int) *tensor.Tensor {
	return b.putSum(nans(tensor.Elements(shape...)), shape...)
}

func (b *bench) randomSum(scale float64, shape ...int) (*tensor.Tensor, []float64) {
	t := b.putSum(b.normal(scale, tensor.Elements(shape...)), shape...)
	return t, b.read(t)
}

func nans(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.NaN()
	}
	return values
}

func (b *bench) normal(scale float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = scale * b.rng.NormFloat64()
	}
	return values
}

func (b *bench) putAs(dtype tensor.DType, values []float64, shape ...int) *tensor.Tensor {
	n := len(values)
	before, after := 1+b.rng.IntN(40), 1+b.rng.IntN(40)
	block := nans(before + n + after)
	copy(block[before:], values)
	h := &held{block: b.dev.Heap().New(tensor.Workspace, dtype, len(block)), before: before}
	b.dev.Upload(h.block, block)
	h.part = h.block.Part(before, before+n, shape...)
	b.held = append(b.held, h)
	return h.part
}

// blank makes an output full of NaN.
func (b *bench) blank(shape ...int) *tensor.Tensor {
	return b.put(nans(tensor.Elements(shape...)), shape...)
}

// random makes a tensor of normal values, and returns them as the device has rounded them.
func (b *bench) random(scale float64, shape ...int) (*tensor.Tensor, []float64) {
	t := b.put(b.normal(scale, tensor.Elements(shape...)), shape...)
	return t, b.read(t)
}

// ints makes an I32 tensor.
func (b *bench) ints(values []int32) *tensor.Tensor {
	t := b.dev.Heap().New(tensor.Inputs, tensor.I32, len(values))
	b.dev.UploadI32(t, values)
	b.held = append(b.held, &held{block: t})
	return t
}

func (b *bench) read(t *tensor.Tensor) []float64 {
	values := make([]float64, t.Len())
	b.dev.Download(values, t)
	return values
}

// want compares got with the reference, to the bench's tolerance.
func (b *bench) want(what string, got *tensor.Tensor, want []float64) {
	b.Helper()
	b.near(what, b.read(got), want, b.tol)
}

// near compares to a share of the reference's largest finite element.
func (b *bench) near(what string, got, want []float64, tol float64) {
	b.Helper()
	b.close(what, got, want, tol, math.SmallestNonzeroFloat64)
}

// close compares to a share of the reference's largest finite element, or of floor if that is larger.
func (b *bench) close(what string, got, want []float64, tol, floor float64) {
	b.Helper()
	top := floor
	for _, w := range want {
		if !math.IsInf(w, 0) {
			top = max(top, math.Abs(w))
		}
	}
	for i, w := range want {
		if e := math.Abs(got[i]-w) / top; got[i] != w && e*b.worst.allowed >= b.worst.error*tol {
			b.worst.what, b.worst.error, b.worst.allowed = what, e, tol
		}
		if got[i] != w && !(math.Abs(got[i]-w) <= tol*top) {
			b.Errorf("%s: element %d of %d is %v, want %v (largest %.3g, error %.2g of it)",
				what, i, len(want), got[i], w, top, math.Abs(got[i]-w)/top)
			return
		}
	}
}

// equal demands the same bits.
func (b *bench) equal(what string, got, want []float64) {
	b.Helper()
	for i, w := range want {
		if math.Float64bits(got[i]) != math.Float64bits(w) {
			b.Errorf("%s: element %d is %v, want exactly %v", what, i, got[i], w)
			return
		}
	}
}

// free checks all guards and gives everything back.
func (b *bench) free() {
	b.Helper()
	for _, h := range b.held {
		if h.part != nil {
			values := b.read(h.block)
			for i, v := range values {
				if inside := i >= h.before && i < h.before+h.part.Len(); !inside && v == v {
					b.Errorf("%v: written at %d, outside of its %d elements", h.part, i-h.before, h.part.Len())
					break
				}
			}
		}
		h.block.Release()
	}
	b.held = nil
}
