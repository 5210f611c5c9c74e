package devicetest

import (
	"math"

	"triax/tensor"
)

// copies: float conversions, to nearest even; special values; zero.
func copies(b *bench) {
	values := []float64{0, math.Copysign(0, -1), 1, -1.5, 1.0 / 3, 65504, 3e38, math.Inf(1), math.Inf(-1), 1e-30}
	for range 90 {
		values = append(values, b.rng.NormFloat64())
	}
	float := b.put(values, len(values))
	have := b.read(float)
	if b.dev.Float() == tensor.F64 {
		b.equal("upload", have, values)
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16} {
		there := b.dev.Heap().New(tensor.Workspace, d, len(values))
		b.dev.Copy(there, float)
		want := make([]float64, len(values))
		for i, v := range have {
			want[i] = rounded(d, v)
		}
		b.equal("copy to "+d.String(), b.read(there), want)
		back := b.blank(len(values))
		b.dev.Copy(back, there)
		b.equal("copy back from "+d.String(), b.read(back), want)
		b.dev.Zero(there)
		b.equal("zero", b.read(there), make([]float64, len(values)))
		there.Release()
	}
	ids, other := b.ints([]int32{4, -1, 7}), b.ints(make([]int32, 3))
	b.dev.Copy(other, ids)
	table, _ := b.random(1, 8, 1)
	y := b.blank(3, 1)
	b.dev.Embed(y, table, other, 0)
	want := b.read(table)
	b.equal("copied ids", b.read(y), []float64{want[4], 0, want[7]})
}

// rounded is v in type d. For BF16 it picks the nearest of the two neighbours, the even one in a tie.
func rounded(d tensor.DType, v float64) float64 {
	switch {
	case d == tensor.F32:
		return float64(float32(v))
	case d == tensor.F64 || v == 0 || math.IsInf(v, 0):
		return v
	}
	_, exp := math.Frexp(v)
	unit := math.Ldexp(1, max(exp-8, -133)) // 8 bits of precision, see IEEE 754's binary32 for the range
	r := math.RoundToEven(v/unit) * unit
	if math.Abs(r) > math.Ldexp(255, 120) {
		return math.Inf(int(math.Copysign(1, v)))
	}
	return r
}

// views: parts and rows are the same memory.
func views(b *bench) {
	t, values := b.random(1, 5, 7)
	b.equal("rows", b.read(t.Rows(1, 3)), values[7:21])
	b.equal("flat", b.read(t.Flat(3, 9)), values[3:9])
	b.dev.Zero(t.Rows(2, 3))
	clear(values[14:21])
	b.equal("zeroed row", b.read(t), values)
	b.dev.Copy(t.View(35).Flat(0, 7), t.Rows(4, 5).View(7))
	copy(values[:7], values[28:])
	b.equal("copied row", b.read(t), values)
}
