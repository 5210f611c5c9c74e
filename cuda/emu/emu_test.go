//go:build cgo && linux

package emu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"triax/cuda/driver"
	"triax/cuda/kernels"
)

// machine is the emulated libraries, built once a test.
type machine struct {
	d *driver.Driver
	c *driver.Compiler
}

func newMachine(t *testing.T) machine {
	t.Helper()
	l := libraries(t)
	d, err := driver.Load(l.Driver)
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.LoadCompiler(l.Compiler)
	if err != nil {
		t.Fatal(err)
	}
	return machine{d, c}
}

func libraries(t *testing.T) driver.Libraries {
	t.Helper()
	l, err := Build(t.TempDir())
	if errors.Is(err, ErrNoCompiler) && os.Getenv("TRIAX_EMU") == "" {
		t.Skip("no g++: kernels are not run on the emulator (apt install g++)")
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// on binds a device on a thread of its own.
func (m machine) on(t *testing.T, ordinal int, f func(c *driver.Context)) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := m.d.Bind(ordinal)
	if err != nil {
		t.Fatal(err)
	}
	f(c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// packed are a kernel's arguments, each aligned to its own size.
func packed(args ...any) []byte {
	var b bytes.Buffer
	for _, a := range args {
		size := binary.Size(a)
		for b.Len()%size != 0 {
			b.WriteByte(0)
		}
		_ = binary.Write(&b, binary.LittleEndian, a) // a buffer takes all
	}
	return b.Bytes()
}

func floats(t *testing.T, c *driver.Context, x []float32) driver.Pointer {
	t.Helper()
	p, err := c.Alloc(int64(4 * len(x)))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := binary.Append(nil, binary.LittleEndian, x)
	if err := c.CopyIn(p, b); err != nil {
		t.Fatal(err)
	}
	return p
}

func back(t *testing.T, c *driver.Context, p driver.Pointer, n int) []float32 {
	t.Helper()
	b, x := make([]byte, 4*n), make([]float32, n)
	if err := errors.Join(c.CopyOut(b, p), c.Sync(), c.Free(p)); err != nil {
		t.Fatal(err)
	}
	if _, err := binary.Decode(b, binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestStates: devices are described, and refusals carry the library's words.
func TestStates(t *testing.T) {
	m := newMachine(t)
	infos, err := m.d.Devices()
	if err != nil || len(infos) != 4 || infos[0].Arch() != "sm_90" || !strings.Contains(infos[2].String(), "shuffled") {
		t.Fatalf("%v %v", infos, err)
	}
	m.on(t, 0, func(c *driver.Context) {
		if _, err := c.Alloc(1 << 40); !driver.OutOfMemory(err) {
			t.Errorf("a terabyte: %v", err)
		}
		left, err := c.Left()
		p, err2 := c.Alloc(1 << 20)
		after, err3 := c.Left()
		if err := errors.Join(err, err2, err3); err != nil || left-after != 1<<20 {
			t.Errorf("%d bytes taken: %v", left-after, err)
		}
		var e *driver.Error
		if err := c.CopyIn(p, make([]byte, 1<<20+1)); !errors.As(err, &e) || e.Code != 1 {
			t.Errorf("beyond the end: %v", err)
		}
		if err := c.Free(p); err != nil {
			t.Error(err)
		}
		if err := c.Free(p); !errors.As(err, &e) {
			t.Errorf("freed twice: %v", err)
		}
		if _, err := c.Load([]byte("no module"+strings.Repeat(" ", 64)), nil, 0); !errors.As(err, &e) {
			t.Errorf("text as a module: %v", err)
		}
	})
	if _, err := m.c.Compile("bad.cu", "KERNEL(", nil); err == nil || !strings.Contains(err.Error(), "error") {
		t.Errorf("broken source: %v", err)
	}
}

// TestAllCompile: every kernel compiles for both storage types, and its packed arguments are as long as its signature says.
func TestAllCompile(t *testing.T) {
	m := newMachine(t)
	total := 0
	for _, file := range kernels.Files() {
		list, err := kernels.Signatures(file, kernels.Source(file))
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %d kernels, %v", file, len(list), err)
		}
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		types := [][]string{nil, {"-DSTORE_BF16"}}
		if kernels.Plain(file) {
			types = types[:1]
		}
		for _, options := range types {
			image, err := m.c.Compile(file, kernels.Source(file), options)
			if err != nil {
				t.Fatal(err)
			}
			m.on(t, 0, func(c *driver.Context) {
				f, err := c.Load(image, names, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list {
					size := 0
					for _, p := range s.Params {
						n, align := 0, 0
						n = map[string]int{"float": 4, "i32": 4, "u32": 4, "int": 4, "double": 8, "i64": 8, "u64": 8}[p.Type]
						if p.Pointer {
							n = 8
						}
						align = n
						if p.Type == "attend" && !p.Pointer { // a struct by value: ten words of 8 bytes and eight of 4
							n, align = 112, 8
						}
						if n == 0 {
							t.Fatalf("%v: size of %s?", s, p.Type)
						}
						size = (size+align-1)/align*align + n
					}
					// One byte too many is refused with both lengths, so it tells what the compiled kernel takes.
					err := c.Launch(f[s.Name], driver.Dim{X: 1, Y: 1, Z: 1}, driver.Dim{X: 32, Y: 1, Z: 1}, 0, make([]byte, size+1))
					if err == nil || !strings.Contains(err.Error(), "for "+strconv.Itoa(size)+",") {
						t.Errorf("%v: packed %d bytes: %v", s, size, err)
					}
				}
			})
		}
		total += len(list)
	}
	t.Logf("%d kernels in %d files", total, len(kernels.Files()))
	if all := kernels.All(); len(all) != total || total < 25 {
		t.Errorf("%d kernels compiled, %d listed", total, len(all))
	}
}

const rows, cols = 37, 83

// norm runs layer_norm of a source on a device; without an error y, and the largest difference from float64.
func norm(t *testing.T, m machine, ordinal int, source string, x, w, b []float32) (y []float32, worst float64, err error) {
	t.Helper()
	image, err := m.c.Compile("norm.cu", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.on(t, ordinal, func(c *driver.Context) {
		f, e := c.Load(image, []string{"layer_norm"}, 0)
		if e != nil {
			t.Fatal(e)
		}
		py, pm, pr := floats(t, c, make([]float32, rows*cols)), floats(t, c, make([]float32, rows)), floats(t, c, make([]float32, rows))
		px, pw, pb := floats(t, c, x), floats(t, c, w), floats(t, c, b)
		err = c.Launch(f["layer_norm"], driver.Dim{X: (rows + 3) / 4, Y: 1, Z: 1}, driver.Dim{X: 128, Y: 1, Z: 1}, 0,
			packed(py, pm, pr, px, pw, pb, int64(rows), int64(cols), float32(1e-5)))
		if err != nil {
			return
		}
		y = back(t, c, py, rows*cols)
		for _, p := range []driver.Pointer{pm, pr, px, pw, pb} {
			if e := c.Free(p); e != nil {
				t.Error(e)
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	for r := range rows {
		mean, square := 0.0, 0.0
		for c := range cols {
			mean += float64(x[r*cols+c]) / cols
		}
		for c := range cols {
			d := float64(x[r*cols+c]) - mean
			square += d * d / cols
		}
		for c := range cols {
			want := (float64(x[r*cols+c])-mean)/math.Sqrt(square+1e-5)*float64(w[c]) + float64(b[c])
			worst = max(worst, math.Abs(want-float64(y[r*cols+c])))
		}
	}
	return y, worst, nil
}

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rand.NormFloat64())
	}
	return x
}

// TestNormUnderAllOrders: the same bits whoever runs first, and near float64.
func TestNormUnderAllOrders(t *testing.T) {
	m := newMachine(t)
	x, w, b := random(rows*cols), random(cols), random(cols)
	var first []float32
	for ordinal := range 4 {
		y, worst, err := norm(t, m, ordinal, kernels.Source("norm.cu"), x, w, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("device %d: worst difference from float64 %.2g", ordinal, worst)
		if worst > 5e-6 {
			t.Errorf("device %d: %g from float64", ordinal, worst)
		}
		if first == nil {
			first = y
		}
		for i := range y {
			if math.Float32bits(y[i]) != math.Float32bits(first[i]) {
				t.Fatalf("device %d: element %d is %v, on device 0 %v", ordinal, i, y[i], first[i])
			}
		}
	}
}

// sums runs column_part: sums down columns through shared memory, between barriers.
func sums(t *testing.T, m machine, ordinal int, source string, x []float32) (y []float32, err error) {
	t.Helper()
	image, err := m.c.Compile("columns.cu", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.on(t, ordinal, func(c *driver.Context) {
		f, e := c.Load(image, []string{"column_part"}, 0)
		if e != nil {
			t.Fatal(e)
		}
		part, px := floats(t, c, make([]float32, cols)), floats(t, c, x)
		err = c.Launch(f["column_part"], driver.Dim{X: (cols + 31) / 32, Y: 1, Z: 1}, driver.Dim{X: 32, Y: 8, Z: 1}, 0, packed(part, px, int64(rows), int64(cols), int64(rows)))
		if err == nil {
			y = back(t, c, part, cols)
		}
	})
	return y, err
}

// TestDeletedBarrier: with its barriers the kernel's sums are right under every order; without the first one some order finds out.
func TestDeletedBarrier(t *testing.T) {
	m := newMachine(t)
	x := random(rows * cols)
	wrong := func(source string, ordinal int) bool {
		y, err := sums(t, m, ordinal, source, x)
		if err != nil {
			return true
		}
		for c := range cols {
			want := 0.0
			for r := range rows {
				want += float64(x[r*cols+c])
			}
			if !(math.Abs(want-float64(y[c])) < 1e-4) {
				return true
			}
		}
		return false
	}
	source := kernels.Source("columns.cu")
	mutant := strings.Replace(source, "column[threadIdx.y * 33 + threadIdx.x] = v;\n  __syncthreads();", "column[threadIdx.y * 33 + threadIdx.x] = v;", 1)
	if mutant == source {
		t.Fatal("no barrier to delete")
	}
	caught := 0
	for ordinal := range 4 {
		if wrong(source, ordinal) {
			t.Errorf("device %d: the kernel is wrong", ordinal)
		}
		if wrong(mutant, ordinal) {
			caught++
		}
	}
	t.Logf("a deleted barrier is caught under %d of 4 orders", caught)
	if caught == 0 {
		t.Error("a deleted barrier is not caught")
	}
}

// TestProducts: what is asked of the matrix library is the product that was meant, in all four forms, added to what was there or not.
func TestProducts(t *testing.T) {
	l := libraries(t)
	d, err := driver.Load(l.Driver)
	if err != nil {
		t.Fatal(err)
	}
	blas, err := driver.LoadBLAS(l.BLAS)
	if err != nil {
		t.Fatal(err)
	}
	const m, n, k = 5, 7, 11
	machine{d: d}.on(t, 0, func(c *driver.Context) {
		p, err := blas.NewProducts(c, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for form := range 4 {
			for _, beta := range []float32{0, 1} {
				a, b, y := random(m*k), random(k*n), random(m*n)
				transA, transB := form&1 != 0, form&2 != 0
				pa, pb, py := floats(t, c, a), floats(t, c, b), floats(t, c, y)
				if err := p.Run(driver.Product{M: m, N: n, K: k, TransA: transA, TransB: transB, Align: [3]uint32{4, 4, 4}}, py, pa, pb, beta); err != nil {
					t.Fatal(err)
				}
				got := back(t, c, py, m*n)
				if err := errors.Join(c.Free(pa), c.Free(pb)); err != nil {
					t.Error(err)
				}
				for i := range m {
					for j := range n {
						want := float64(beta * y[i*n+j])
						for x := range k {
							ia, ib := i*k+x, x*n+j
							if transA {
								ia = x*m + i
							}
							if transB {
								ib = j*k + x
							}
							want += float64(a[ia]) * float64(b[ib])
						}
						if math.Abs(want-float64(got[i*n+j])) > 1e-5 {
							t.Fatalf("transposed %v %v, beta %g: [%d %d] is %g, want %g", transA, transB, beta, i, j, got[i*n+j], want)
						}
					}
				}
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
