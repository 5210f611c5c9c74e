package plan

import (
	"triax/tensor"
)

// Sheet is a device on paper: memory that is only counted, kernels that only cost. It implements tensor.Device.
type Sheet struct {
	float tensor.DType
	heap  *tensor.Heap
	price Kernels
	low   bool // products are those of blocks
	last  dropped
	// Since the last reset:
	Seconds float64 // of kernels, one after another
	FLOPs   float64 // of matrix products and attention: two a multiply-add
	Count   int     // of kernels
}

// Kernels prices what a device does, in seconds.
type Kernels interface {
	// Gemm is c [m n] = a b with inner dimension k; low in the low precision that blocks may use.
	Gemm(m, n, k int, low bool) float64
	// Attention is that of so many heads over sequences, causal or whole; backward costs more.
	Attention(samples, heads, seq, dim int, full, backward bool) float64
	// Pass is a kernel that is bound by the memory it reads and writes.
	Pass(bytes float64) float64
	// Fusion is which passes the program merges.
	Fusion() Fusion
}

// Fusion is which passes over memory a program merges with others, beside those that are one kernel here.
type Fusion struct {
	// Elementwise: a bias rides on the product or the activation beside it, a dropout on the sum after it (Narayanan et al. 2021, §4.2).
	Elementwise bool
	// LooseLoss is the opposite for the loss: logits are widened to 4 bytes, and every operation passes over them by itself.
	LooseLoss bool
}

// dropped is a dropout that the next sum may take in.
type dropped struct {
	out     *tensor.Tensor
	seconds float64
}

// NewSheet makes a device of a floating type.
func NewSheet(float tensor.DType, price Kernels) *Sheet {
	return &Sheet{float: float, price: price, heap: tensor.NewHeap(func(d tensor.DType, n int) any { return blank{d, n} }, false)}
}

// blank is memory that holds nothing.
type blank struct {
	dtype tensor.DType
	n     int
}

func (b blank) Slice(lo, hi int) tensor.Storage { return blank{b.dtype, hi - lo} }
func (b blank) DType() tensor.DType             { return b.dtype }

func (s *Sheet) take(seconds float64) { s.Seconds += seconds; s.Count++; s.last = dropped{} }

// pass prices a kernel that reads and writes these tensors once.
func (s *Sheet) pass(ts ...*tensor.Tensor) {
	bytes := 0.0
	for _, t := range ts {
		if t != nil {
			bytes += float64(t.Bytes())
		}
	}
	s.take(s.price.Pass(bytes))
}

func (s *Sheet) Name() string          { return "paper" }
func (s *Sheet) Float() tensor.DType   { return s.float }
func (s *Sheet) Heap() *tensor.Heap    { return s.heap }
func (s *Sheet) Sync() error           { return nil }
func (s *Sheet) Close()                {}
func (s *Sheet) Zero(t *tensor.Tensor) { s.pass(t) }
func (s *Sheet) New(kind tensor.Kind, shape ...int) *tensor.Tensor {
	return s.heap.New(kind, s.float, shape...)
}
func (s *Sheet) Copy(dst, src *tensor.Tensor)             { s.pass(dst, src) }
func (s *Sheet) Upload(*tensor.Tensor, []float64)         {}
func (s *Sheet) UploadI32(*tensor.Tensor, []int32)        {}
func (s *Sheet) Download(dst []float64, _ *tensor.Tensor) { clear(dst) }

func (s *Sheet) Gemm(c, a, _ *tensor.Tensor, transA, _ bool, _ float64) {
	n := c.Shape[len(c.Shape)-1]
	m := c.Len() / max(1, n)
	k := a.Len() / max(1, m)
	s.FLOPs += 2 * float64(m) * float64(n) * float64(k)
	s.take(s.price.Gemm(m, n, k, s.low))
}

func (s *Sheet) Add(y, x *tensor.Tensor) {
	if d := s.last; d.out != nil && (d.out == y || d.out == x) {
		s.Seconds -= d.seconds
		s.Count--
	}
	s.pass(y, y, x)
}

func (s *Sheet) AddBias(y, b *tensor.Tensor) {
	if !s.price.Fusion().Elementwise {
		s.pass(y, y, b)
	}
}

func (s *Sheet) Dropout(y, x, _ *tensor.Tensor, _ uint64, _, _ int, _ float64) {
	before := s.Seconds
	s.pass(y, x)
	if s.price.Fusion().Elementwise {
		s.last = dropped{y, s.Seconds - before}
	}
}

func (s *Sheet) Scale(y *tensor.Tensor, _ float64)       { s.pass(y, y) }
func (s *Sheet) ScaleRows(y, x, w *tensor.Tensor)        { s.pass(y, x, w) }
func (s *Sheet) DotRows(d, x, y *tensor.Tensor)          { s.pass(d, x, y) }
func (s *Sheet) BiasGrad(db, dy *tensor.Tensor)          { s.pass(db, dy) }
func (s *Sheet) Gelu(y, x *tensor.Tensor)                { s.pass(y, x) }
func (s *Sheet) GeluGrad(dx, x, dy *tensor.Tensor)       { s.pass(dx, x, dy) }
func (s *Sheet) SwiGLU(y, gate, up *tensor.Tensor)       { s.pass(y, gate, up) }
func (s *Sheet) SwiGLUGrad(a, b, c, d, e *tensor.Tensor) { s.pass(a, b, c, d, e) }
func (s *Sheet) Rope(x, _ *tensor.Tensor, _ int, _ []float64, _ bool) {
	s.pass(x, x)
}

func (s *Sheet) LayerNorm(y, _, _, x, _, _ *tensor.Tensor, _ float64) { s.pass(y, x) }
func (s *Sheet) LayerNormInput(dx, dy, x, _, _, _ *tensor.Tensor)     { s.pass(dx, dy, x) }
func (s *Sheet) LayerNormWeight(_, _, dy, x, _, _ *tensor.Tensor)     { s.pass(dy, x) }
func (s *Sheet) RMSNorm(y, _, x, _ *tensor.Tensor, _ float64)         { s.pass(y, x) }
func (s *Sheet) RMSNormInput(dx, dy, x, _, _ *tensor.Tensor)          { s.pass(dx, dy, x) }
func (s *Sheet) RMSNormWeight(_, dy, x, _ *tensor.Tensor)             { s.pass(dy, x) }

// scores counts the multiply-adds of q k^T over the pairs that are seen.
func scores(at tensor.Attention) float64 {
	pairs := float64(at.Seq) * float64(at.Seq)
	if !at.Full {
		pairs = float64(at.Seq) * float64(at.Seq+1) / 2
	}
	return float64(at.Samples) * float64(at.Heads) * float64(at.HeadDim) * pairs
}

func (s *Sheet) Attention(_, _, _, _, _ *tensor.Tensor, at tensor.Attention) {
	s.FLOPs += 4 * scores(at)
	s.take(s.price.Attention(at.Samples, at.Heads, at.Seq, at.HeadDim, at.Full, false))
}

func (s *Sheet) AttentionGrad(_, _, _, _, _, _, _, _, _ *tensor.Tensor, at tensor.Attention) {
	s.FLOPs += 8 * scores(at) // the forward's scores made again are not counted
	s.take(s.price.Attention(at.Samples, at.Heads, at.Seq, at.HeadDim, at.Full, true))
}

func (s *Sheet) AttentionMerge(out, _, part, _ *tensor.Tensor, _ tensor.Attention) {
	s.pass(out, out, part)
}
func (s *Sheet) Embed(y, _, _ *tensor.Tensor, _ int)                { s.pass(y, y) }
func (s *Sheet) EmbedGrad(_, dy, _ *tensor.Tensor, _ int)           { s.pass(dy, dy, dy) }
func (s *Sheet) RowSum(_, _, logits, _, _ *tensor.Tensor, _, _ int) { s.pass(logits) }
func (s *Sheet) LossOf(_, _, _, _ *tensor.Tensor) float64           { return 0 }
func (s *Sheet) AdamW(w, g, m, v *tensor.Tensor, _ tensor.AdamW)    { s.pass(w, w, g, m, m, v, v) }
func (s *Sheet) SGD(w, g, m *tensor.Tensor, _ tensor.SGD)           { s.pass(w, w, g, m, m) }
func (s *Sheet) SumSquares(t *tensor.Tensor) float64                { s.pass(t); return 0 }

var _ tensor.Device = (*Sheet)(nil)

// Bytes that a loss out of single operations moves a logit of 2 bytes: cast (2 read, 4 written), maximum (4), subtract, exponential and division (8 each), sum (4);
// backward multiplies (8) and casts (6). Sum and gradient as priced here move 2 and 4 of these.
const (
	looseForward  = 6 + 4 + 8 + 8 + 8 + 4 - 2
	looseBackward = 8 + 6
)

func (s *Sheet) RowMax(_, logits *tensor.Tensor, _ int) { s.loss(logits, 2, looseForward) }

func (s *Sheet) LossGrad(logits, _, _, _ *tensor.Tensor, _, _ int, _ float64) {
	s.loss(logits, 4, looseBackward)
}

// loss is a pass over logits of 2 bytes: so many bytes a logit, or as many in a loose loss.
func (s *Sheet) loss(logits *tensor.Tensor, fused, loose float64) {
	per := fused
	if s.price.Fusion().LooseLoss {
		per = loose
	}
	s.take(s.price.Pass(per / 2 * float64(logits.Bytes())))
}
