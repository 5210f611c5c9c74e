package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/tensor/alloctest"
)

func spec(name string, d DType, shape []int, values ...float64) Spec {
	raw := make([]byte, len(values)*d.Size())
	d.Put(raw, values)
	return Spec{name, d, shape, func(w io.Writer) error { _, err := w.Write(raw); return err }}
}

func TestThereAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	err := Create(path, map[string]string{"format": "pt"}, []Spec{
		spec("w", F32, []int{2, 3}, 1, 2, 3, 4, 5, 6), spec("b", BF16, []int{2}, 0.5, -3), spec("nothing", F64, []int{0, 4}), spec("scalar", F64, nil, math.Pi), spec("h", F16, []int{1}, 1.5),
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if fmt.Sprint(f.Names()) != "[w b nothing scalar h]" && fmt.Sprint(f.Names()) != "[w b scalar nothing h]" || f.Metadata["format"] != "pt" {
		t.Errorf("%v %v", f.Names(), f.Metadata)
	}
	for name, want := range map[string][]float64{"w": {1, 2, 3, 4, 5, 6}, "b": {0.5, -3}, "nothing": {}, "scalar": {math.Pi}, "h": {1.5}} {
		a := f.Arrays[name]
		got := make([]float64, a.Elements())
		a.DType.Values(got, f.Bytes(a))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestRounding: every 16-bit value is kept, and values between go to the nearest, ties to even, from float64 in one step.
func TestRounding(t *testing.T) {
	for _, d := range []DType{F16, BF16} {
		var raw [2]byte
		var x [1]float64
		last := math.Inf(-1)
		for i := range 1 << 15 { // from zero up
			binary.LittleEndian.PutUint16(raw[:], uint16(i))
			d.Values(x[:], raw[:])
			v := x[0]
			if v != v {
				continue
			}
			var back [2]byte
			d.Put(back[:], x[:])
			if back != raw {
				t.Fatalf("%s: %v becomes % x, was % x", d, v, back, raw)
			}
			if !math.IsInf(v, 0) && !math.IsInf(last, 0) {
				middle := last + (v-last)/2
				even := uint16(i - i%2)
				for _, c := range []struct {
					x    float64
					want uint16
				}{{math.Nextafter(middle, v), uint16(i)}, {math.Nextafter(middle, last), uint16(i - 1)}, {middle, even}} {
					if c.want == 0 && i == 0 {
						continue
					}
					d.Put(back[:], []float64{c.x})
					if got := binary.LittleEndian.Uint16(back[:]); got != c.want && !(middle == last || middle == v) {
						t.Fatalf("%s: %v becomes %#x, want %#x", d, c.x, got, c.want)
					}
					d.Put(back[:], []float64{-c.x})
					if got := binary.LittleEndian.Uint16(back[:]); got != c.want|0x8000 && !(middle == last || middle == v) {
						t.Fatalf("%s: %v becomes %#x, want %#x", d, -c.x, got, c.want|0x8000)
					}
				}
			}
			last = v
		}
	}
	var raw [2]byte
	for x, want := range map[float64]uint16{math.Inf(1): 0x7c00, -1e9: 0xfc00, 65519: 0x7bff, 65520: 0x7c00} {
		if F16.Put(raw[:], []float64{x}); binary.LittleEndian.Uint16(raw[:]) != want {
			t.Errorf("%v becomes % x", x, raw)
		}
	}
	BF16.Put(raw[:], []float64{math.NaN()})
	if BF16.Values(make([]float64, 1), raw[:]); raw == [2]byte{0x80, 0x7f} {
		t.Error("NaN becomes infinite")
	}
}

// file is a file of a header and some bytes.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		raw  []byte
		want string
	}{
		{nil, "no safetensors file"},
		{make([]byte, 4), "no safetensors file"},
		{bytes.Repeat([]byte{0xff}, 64), "header of"},
		{file(`[1, 2, 3, 4]`, 0), "want a JSON object"},
		{file(`{"a": 3}        `, 0), "array \"a\""},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), "bytes 0 to 8 of 7"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 9), "longer than its header"},
		{file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "takes 12 bytes"},
		{file(`{"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}}`, 8), "not known"},
		{file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}}`, 8), "shape [-1]"},
		{file(`{"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0), "too large"},
		{file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6), "overlap"},
		{file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8), "stands twice"},
		{file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}}`, 5), "gaps"},
		{file(`{} {}           `, 0), "more after"},
	} {
		path := filepath.Join(t.TempDir(), "broken")
		if err := os.WriteFile(path, c.raw, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %q", c.raw[:min(len(c.raw), 80)], err, c.want)
		}
		if f != nil {
			f.Close()
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

// TestWriteFails: what cannot be written whole leaves what was there, and nothing beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	short := spec("a", F32, []int{3}, 1, 2)
	for _, arrays := range [][]Spec{{short}, {spec("a", F32, nil, 1), spec("a", F32, nil, 1)}, {{Name: "a", DType: F32, Shape: nil, Write: func(io.Writer) error { return io.ErrClosedPipe }}}} {
		if err := Create(path, nil, arrays); err == nil {
			t.Error("no error")
		}
	}
	left, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(path); err != nil || len(left) != 1 || string(text) != "before" {
		t.Errorf("%v %v %q", left, err, text)
	}
}

// FuzzOpen: any bytes are a file whose arrays can be read to the last byte, or are refused.
func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}`, 8))
	f.Add(file(`{"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"F16","shape":[1,1],"data_offsets":[2,4]}}`, 4))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 8 {
			return
		}
		var got *File
		var err error
		alloctest.Linear(t, len(raw), func() { got, err = parse(raw) })
		if err != nil {
			return
		}
		for _, a := range got.Arrays {
			if b := got.Bytes(a); len(b) != a.Elements()*a.DType.Size() {
				t.Fatalf("%v: %d bytes", a, len(b))
			} else if a.DType.Float() {
				a.DType.Values(make([]float64, a.Elements()), b)
			}
		}
	})
}

func BenchmarkValues(b *testing.B) {
	raw, dst := make([]byte, 1<<20), make([]float64, 1<<19)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	b.SetBytes(1 << 20)
	for b.Loop() {
		BF16.Values(dst, raw)
	}
}
