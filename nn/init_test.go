package nn_test

import (
	"math"
	"slices"
	"testing"

	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

// TestB64InitByElement: starting values depend on seed, name and element only, whatever slice is asked for, and
// layers differ from one another.
func TestB64InitByElement(t *testing.T) {
	in := nn.Init{Mean: 0.5, Std: 2}
	whole := make([]float64, 101)
	in.Values(whole, 7, "blocks.0.attn.q.weight", 0)
	for lo := 0; lo < len(whole); lo += 3 {
		for hi := lo; hi <= len(whole); hi += 5 {
			part := make([]float64, hi-lo)
			in.Values(part, 7, "blocks.0.attn.q.weight", lo)
			for i, x := range part {
				if x != whole[lo+i] {
					t.Fatalf("elements %d to %d: [%d] = %v, want %v", lo, hi, i, x, whole[lo+i])
				}
			}
		}
	}
	other := make([]float64, 101)
	for _, c := range []struct {
		seed uint64
		name string
	}{{8, "blocks.0.attn.q.weight"}, {7, "blocks.1.attn.q.weight"}} {
		in.Values(other, c.seed, c.name, 0)
		same := 0
		for i := range other {
			if other[i] == whole[i] {
				same++
			}
		}
		if same > 0 {
			t.Errorf("seed %d, %s: %d of 101 values are those of seed 7, blocks.0", c.seed, c.name, same)
		}
	}
}

// TestInitMoments: mean, deviation and fourth moment of a long stream, within five standard errors.
func TestInitMoments(t *testing.T) {
	x := make([]float64, 1<<18)
	nn.Init{Std: 1}.Values(x, 1, "w", 0)
	var m1, m2, m4 float64
	for _, v := range x {
		m1, m2, m4 = m1+v, m2+v*v, m4+v*v*v*v
	}
	n := float64(len(x))
	for _, c := range []struct {
		name             string
		got, want, sigma float64
	}{{"mean", m1 / n, 0, 1}, {"variance", m2 / n, 1, math.Sqrt2}, {"fourth moment", m4 / n, 3, math.Sqrt(96)}} {
		if math.Abs(c.got-c.want) > 5*c.sigma/math.Sqrt(n) {
			t.Errorf("%s %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestFillParts: the parts that ranks fill alone are those of the whole, padding is zero, and Runs agrees with Logical.
func TestFillParts(t *testing.T) {
	dev := cpu.New(cpu.Options{Float: tensor.F64, Poison: true})
	defer dev.Close()
	fill := func(p *nn.Param) []float64 {
		p.Data = dev.New(tensor.Parameters, p.Local...)
		defer p.Data.Release()
		nn.Fill(dev, p, 9)
		out := make([]float64, p.Len())
		dev.Download(out, p.Data)
		return out
	}
	shape := []int{7, 300}
	init := nn.Init{Std: 1}
	whole := fill(&nn.Param{Name: "w", Shape: shape, Local: shape, Hi: 7, Init: init})
	for _, p := range []*nn.Param{
		{Dim: 0, Lo: 2, Hi: 4, Local: []int{2, 300}},
		{Dim: 0, Lo: 6, Hi: 7, Local: []int{3, 300}}, // padded
		{Dim: 0, Lo: 7, Hi: 7, Local: []int{3, 300}}, // all padding
		{Dim: 1, Lo: 100, Hi: 201, Local: []int{7, 101}},
		{Dim: 1, Lo: 299, Hi: 300, Local: []int{7, 4}},
	} {
		p.Name, p.Shape, p.Init = "w", shape, init
		got := fill(p)
		held := 0
		for i, x := range got {
			want := 0.0
			if j := p.Logical(i); j >= 0 {
				want = whole[j]
				held++
			}
			if x != want {
				t.Fatalf("dim %d, %d to %d: element %d is %v, want %v", p.Dim, p.Lo, p.Hi, i, x, want)
			}
		}
		for _, cut := range []int{1, 2, 299, 301, len(got)} { // in pieces, as shards have them
			for lo := 0; lo < len(got); lo += cut {
				hi := min(len(got), lo+cut)
				dst := dev.New(tensor.Parameters, hi-lo)
				if err := nn.FillPart(dev, dst, p, lo, hi, nn.Seed(9)); err != nil {
					t.Fatal(err)
				}
				part := make([]float64, hi-lo)
				dev.Download(part, dst)
				if !slices.Equal(part, got[lo:hi]) {
					t.Fatalf("dim %d, %d to %d: elements %d to %d filled alone differ", p.Dim, p.Lo, p.Hi, lo, hi)
				}
				dst.Release()
			}
		}
		n := 0
		for r := range p.Runs {
			n += r.Len
			for k := range r.Len {
				if p.Logical(r.Local+k) != r.Logical+k {
					t.Fatalf("run %+v: element %d is %d", r, k, p.Logical(r.Local+k))
				}
			}
		}
		if n != held || p.Held() != held {
			t.Errorf("dim %d, %d to %d: %d in runs, %d held, Held says %d", p.Dim, p.Lo, p.Hi, n, held, p.Held())
		}
	}
}

// TestB6TiedOnce: a tied table is one Param on one rank, and after filling both uses see the same memory.
func TestB6TiedOnce(t *testing.T) {
	cfg := tiny(nn.Llama, func(c *nn.Config) { c.Tied = true })
	layers, err := nn.Whole(cfg)
	if err != nil {
		t.Fatal(err)
	}
	first, head := layers[0].Params()[0], layers[cfg.Layers+2].Params()[0]
	if first != head || first.Tied || !first.Counted {
		t.Errorf("one rank: table %p and %p, tied %v, counted %v", first, head, first.Tied, first.Counted)
	}
	n := nn.Count(cfg)
	a, err := nn.Build(cfg, nn.Serial{}, [][2]int{{0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := nn.Build(cfg, nn.Serial{}, [][2]int{{2, n}})
	if err != nil {
		t.Fatal(err)
	}
	pa, pb := a[0][0].Params()[0], b[0][n-2-2].Params()[0]
	if pa.Name != pb.Name || !pa.Tied || !pb.Tied || !pa.Counted || pb.Counted {
		t.Errorf("two ranks: %+v and %+v", pa, pb)
	}
}
