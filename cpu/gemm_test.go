package cpu

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"triax/tensor"
)

// gemmCase fills a device's operands at random and returns them.
func gemmCase(d *Device, rng *rand.Rand, m, n, k int, ta, tb bool) (c, a, b *tensor.Tensor) {
	shape := func(r, c int, turn bool) []int {
		if turn {
			return []int{c, r}
		}
		return []int{r, c}
	}
	fill := func(s ...int) *tensor.Tensor {
		t := d.New(tensor.Workspace, s...)
		v := make([]float64, t.Len())
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		d.Upload(t, v)
		return t
	}
	return fill(m, n), fill(shape(m, k, ta)...), fill(shape(k, n, tb)...)
}

// TestGemmBorders: every edge of tiles, panels and blocks, in all four forms, against sums in plain Go.
func TestGemmBorders(t *testing.T) {
	sizes := []int{1, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 97}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, float := range []tensor.DType{tensor.F32, tensor.F64} {
		for _, isa := range Supported() {
			gemmBorders(t, Options{Float: float, ISA: isa, Threads: 2, Poison: true}, sizes, rng)
		}
	}
	if HasBF16() {
		for _, no := range []bool{false, true} {
			gemmBorders(t, Options{Float: tensor.F32, BF16: true, NoTiles: no, Threads: 2, Poison: true}, sizes, rng)
		}
	}
}

func gemmBorders(t *testing.T, opts Options, sizes []int, rng *rand.Rand) {
	d := New(opts)
	defer d.Close()
	for range 60 {
		m, n, k := sizes[rng.IntN(len(sizes))], sizes[rng.IntN(len(sizes))], sizes[rng.IntN(len(sizes))]
		switch rng.IntN(12) {
		case 0:
			k = blockK - 4 + rng.IntN(20)
		case 1:
			k = 2*blockK - 4 + rng.IntN(20)
		case 2:
			m = blockM - 6 + rng.IntN(12)
		case 3:
			n = blockN - 6 + rng.IntN(60)
		}
		gemmCheck(t, d, rng, m, n, k)
	}
	gemmCheck(t, d, rng, 0, 3, 5)
	gemmCheck(t, d, rng, 3, 4, 0)
	gemmCheck(t, d, rng, 3, blockN+5, 11)
	gemmCheck(t, d, rng, blockM+5, 5, 11)
	gemmCheck(t, d, rng, 17, 50, wholeSize/24+7) // in stretches of k
}

// TestGemmSpreadsNaN: an infinity or NaN in an operand reaches its row or column, zeros on the other side or not.
func TestGemmSpreadsNaN(t *testing.T) {
	all := []Options{{Float: tensor.F64}}
	for _, isa := range Supported() {
		all = append(all, Options{Float: tensor.F32, ISA: isa})
	}
	if HasBF16() {
		for _, no := range []bool{false, true} {
			all = append(all, Options{Float: tensor.F32, BF16: true, NoTiles: no}, Options{Float: tensor.BF16, NoTiles: no})
		}
	}
	for _, opts := range all {
		d := New(opts)
		const m, n, k = 9, 50, 19
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			a, b, c := d.New(tensor.Workspace, m, k), d.New(tensor.Workspace, k, n), d.New(tensor.Workspace, m, n)
			values := make([]float64, m*k)
			values[5*k+18] = bad // the last of an odd depth
			d.Upload(a, values)
			d.Zero(b)
			d.Gemm(c, a, b, false, false, 0)
			got := make([]float64, m*n)
			d.Download(got, c)
			for i, x := range got {
				if i/n == 5 && x == x || i/n != 5 && x != 0 {
					t.Fatalf("%s: %v times zeros: element %d of row %d is %v", d.Name(), bad, i%n, i/n, x)
				}
			}
		}
		d.Close()
	}
}

func gemmCheck(t *testing.T, d *Device, rng *rand.Rand, m, n, k int) {
	t.Helper()
	ta, tb, beta := rng.IntN(2) == 0, rng.IntN(2) == 0, float64(rng.IntN(2))
	c, a, b := gemmCase(d, rng, m, n, k, ta, tb)
	read := func(t *tensor.Tensor) []float64 { v := make([]float64, t.Len()); d.Download(v, t); return v }
	before, av, bv := read(c), read(a), read(b)
	if strings.Contains(d.Name(), "bf16") {
		for _, v := range [][]float64{av, bv} {
			for i, x := range v {
				v[i] = float64(math.Float32frombits(uint32(bf16(x)) << 16))
			}
		}
	}
	d.Gemm(c, a, b, ta, tb, beta)
	got := read(c)
	eps := 1e-7
	if d.Float() == tensor.F64 {
		eps = 1e-16
	}
	for i := range m {
		for j := range n {
			want, size := beta*before[i*n+j], math.Abs(before[i*n+j])
			for p := range k {
				x, y := av[i*k+p], bv[p*n+j]
				if ta {
					x = av[p*m+i]
				}
				if tb {
					y = bv[j*k+p]
				}
				want, size = want+x*y, size+math.Abs(x*y)
			}
			if !(math.Abs(got[i*n+j]-want) <= eps*float64(k+2)*size) {
				t.Fatalf("%s: [%d %d %d] transposed %v %v, beta %v: element %d, %d is %v, want %v", d.Name(), m, n, k, ta, tb, beta, i, j, got[i*n+j], want)
			}
		}
	}
	for _, x := range []*tensor.Tensor{c, a, b} {
		x.Release()
	}
}

// TestGemmThreads: no bit depends on the number of threads, nor on which rows and columns are computed together.
func TestGemmThreads(t *testing.T) {
	gemmThreads(t, false)
	if HasBF16() {
		gemmThreads(t, true)
	}
}

func gemmThreads(t *testing.T, narrow bool) {
	var first []float64
	for threads := 1; threads <= 3; threads++ {
		d := New(Options{Float: tensor.F32, Threads: threads, BF16: narrow})
		rng := rand.New(rand.NewPCG(3, 4))
		c, a, b := gemmCase(d, rng, 130, 200, 901, false, true)
		d.Gemm(c, a, b, false, true, 0)
		v := make([]float64, c.Len())
		d.Download(v, c)
		if first == nil {
			first = v
		}
		part := d.New(tensor.Workspace, 31, 200)
		d.Gemm(part, a.Rows(57, 88), b, false, true, 0)
		pv := make([]float64, part.Len())
		d.Download(pv, part)
		for i, x := range v {
			if x != first[i] || (i >= 57*200 && i < 88*200 && pv[i-57*200] != x) {
				t.Fatalf("%d threads: element %d is %v, with one thread %v", threads, i, x, first[i])
			}
		}
		d.Close()
	}
}

func TestGemmAllocatesNothing(t *testing.T) {
	d := New(Options{Float: tensor.F32})
	defer d.Close()
	c, a, b := gemmCase(d, rand.New(rand.NewPCG(5, 6)), 100, 100, 100, true, false)
	if n := testing.AllocsPerRun(20, func() { d.Gemm(c, a, b, true, false, 1) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
