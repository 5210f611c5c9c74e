package tensor

// Device is what one rank computes with: its memory and its kernels. One value per rank; its methods
// are called from that rank's goroutine only. "Float" below is the device's own floating type,
// Float(): that of parameters and activations. Outputs come first; unless said otherwise an output
// is overwritten and must not overlap an input. Wrong shapes are programming errors and panic,
// naming the operation and the shapes.
//
// Where Float is BF16, what sums are kept in is of the type Float().Accum(), float32: the gradients db, dw and dtable that are
// added into; mean, rstd, lse, max, sum and target; the factors s of ScaleRows and the dots s of DotRows; all of Update. Operations on
// gradients alone (Add, Scale, Zero, Copy) take that type for all their tensors, Gemm's c and EmbedGrad's dtable may be of either type. Arithmetic is
// in float32 or better, and what is stored as bfloat16 is rounded once, to nearest even.
//
// The interface is in levels, lowest first, so that a new device can be brought up and tested step by
// step (package devicetest). Faster fused kernels are optional interfaces, found by type assertion.
type Device interface {
	Memory
	Matrix
	Elementwise
	Normal
	Attend
	Lookup
	Loss
	Update
}

// NewAccum is memory for sums on a device: New with the type Float().Accum().
func NewAccum(d Device, kind Kind, shape ...int) *Tensor {
	return d.Heap().New(kind, d.Float().Accum(), shape...)
}

// Memory is level 0: allocation, copies, host access.
type Memory interface {
	Name() string
	Float() DType
	Heap() *Heap
	// New is Heap().New with the device's float type.
	New(kind Kind, shape ...int) *Tensor
	// Zero sets every element to 0.
	Zero(t *Tensor)
	// Copy sets dst to src: equal lengths; types may differ among the floats (converting, to nearest even).
	Copy(dst, src *Tensor)
	// Upload sets dst (any float type) from float64 values; UploadI32 sets an I32 tensor.
	Upload(dst *Tensor, src []float64)
	UploadI32(dst *Tensor, src []int32)
	// Download reads t (any float type) into dst. len(dst) = t.Len().
	Download(dst []float64, t *Tensor)
	// Sync waits until all work given to the device is done, and reports its failure.
	Sync() error
	// Close stops the device's threads. The device must not be used afterwards.
	Close()
}

// Matrix is level 1.
type Matrix interface {
	// Gemm: c [m n] = op(a) op(b) + beta c, where op transposes when its flag is set:
	// a is [m k] or, transposed, [k m]; b is [k n] or, transposed, [n k]. beta is 0 (c may be
	// uninitialised, NaN included) or 1.
	// Tensors of more than two dims count all but the last as rows.
	Gemm(c, a, b *Tensor, transA, transB bool, beta float64)
}

// Elementwise is level 2. T is any number of rows, F the row length.
type Elementwise interface {
	Add(y, x *Tensor)           // y += x
	Scale(y *Tensor, s float64) // y *= s
	AddBias(y, b *Tensor)       // y [T F] += b [F] on each row
	ScaleRows(y, x, s *Tensor)  // y [T F] = x times s [T] row by row; y may be x
	DotRows(s, x, y *Tensor)    // s [T] = x . y row by row
	BiasGrad(db, dy *Tensor)    // db [F] += sum over rows of dy [T F]
	Gelu(y, x *Tensor)          // tanh form (Hendrycks & Gimpel 2016, §2)
	GeluGrad(dx, x, dy *Tensor) // dx = dy * gelu'(x); dx may be dy
	SwiGLU(y, gate, up *Tensor) // y = silu(gate) * up (Shazeer 2020, §2)
	SwiGLUGrad(dgate, dup, gate, up, dy *Tensor)
	// Rope turns x [T heads*hd] by positions [T] (I32): pair (i, i+hd/2) by the angle pos * freq[i] (Su et al. 2021, §3.4, in the
	// half-split layout of Llama). In place; inverse turns back. freq [hd/2] is not changed while the device lives, and few differ.
	Rope(x, positions *Tensor, heads int, freq []float64, inverse bool)
	// Dropout: y = x * keep / (1-rate) element by element, y may be x. Element (row t, column f) is
	// dropped by the counter-based stream at index(t)*stride + f + offset, where index [T] (I32) is the
	// row's number in the global batch: so a mask depends on no mesh. seed names (run, step, layer, site).
	Dropout(y, x, index *Tensor, seed uint64, stride, offset int, rate float64)
}

// Normal is level 3: normalisation over the last dim, rows independent. mean, rstd are [T].
type Normal interface {
	LayerNorm(y, mean, rstd, x, w, b *Tensor, eps float64) // Ba et al. 2016, §3
	LayerNormInput(dx, dy, x, w, mean, rstd *Tensor)       // dx must not be dy
	LayerNormWeight(dw, db, dy, x, mean, rstd *Tensor)     // dw, db += ...
	RMSNorm(y, rstd, x, w *Tensor, eps float64)            // Zhang & Sennrich 2019, §3
	RMSNormInput(dx, dy, x, w, rstd *Tensor)
	RMSNormWeight(dw, dy, x, rstd *Tensor) // dw += ...
}

// Attention describes causal scaled dot-product attention over Samples sequences of Seq tokens.
// Query head h uses key/value head h / (Heads/KVHeads) (grouped-query attention). Scores are divided
// by sqrt(HeadDim) (Vaswani et al. 2017, §3.2.1).
type Attention struct {
	Samples, Seq            int
	Heads, KVHeads, HeadDim int
	// Segments [Samples*Seq] (I32), when not nil, numbers the documents packed into a sample:
	// a query sees only keys of its own number.
	Segments *Tensor
	// Dropout of attention weights: rate 0 is none. The element of (sample, head, query, key) has the
	// index ((sampleIndex*HeadsTotal + HeadOffset+head)*SeqTotal + query)*SeqTotal + key in the
	// counter-based stream named by Seed. SampleIndex [Samples] (I32) numbers samples in the global batch.
	Rate                   float64
	Seed                   uint64
	HeadsTotal, HeadOffset int
	SampleIndex            *Tensor
	// Full lifts the causal mask: queries and keys are two stretches of the same samples, Seq tokens each, the
	// keys before the queries. Then KeySegments are the keys' document numbers, where Segments are the queries'. A query that sees no
	// key gets out 0 and lse -Inf.
	Full        bool
	KeySegments *Tensor
	// For dropout, query and key count from these offsets in samples of SeqTotal tokens; 0 means Seq.
	SeqTotal, QueryOffset, KeyOffset int
}

// Attend is level 4. q, out [T H*hd]; k, v [T K*hd]; T = Samples*Seq. No device may hold
// Seq x Seq scores of all heads at once: lse [Samples H Seq], the log-sum-exp of each row, is all
// that backward gets (Dao 2023, §3.1).
type Attend interface {
	Attention(out, lse, q, k, v *Tensor, at Attention)
	// AttentionGrad takes out and lse from the forward. They may be those of more keys than k and v hold: the gradients
	// are then these keys' share, and the shares add up (Liu et al. 2023, §3).
	AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v *Tensor, at Attention)
	// AttentionMerge joins the results over two sets of keys: out and lse become those over both.
	AttentionMerge(out, lse, part, partLSE *Tensor, at Attention)
}

// Lookup is level 5. table [R D] holds rows lo .. lo+R of the whole table; ids [T] (I32). Ids outside
// give zero rows and take no gradient (that is what makes it vocabulary-parallel, Shoeybi et al. 2019, §3).
type Lookup interface {
	Embed(y, table, ids *Tensor, lo int)
	EmbedGrad(dtable, dy, ids *Tensor, lo int) // dtable += ...; same bits whatever the number of threads
}

// Loss is level 6: cross-entropy over logits [T R] that hold columns lo .. lo+valid of the vocabulary;
// columns from valid on are padding and take no part. Three passes, so that a vocabulary-parallel
// caller can reduce max, sum and target over its group in between (Shoeybi et al. 2019, §3).
// A target below 0 is masked: it adds no loss and no gradient.
type Loss interface {
	RowMax(max, logits *Tensor, valid int) // max [T]
	// RowSum: sum [T] = sum of exp(logit - max); target [T] = logit of the row's target, 0 if not here.
	RowSum(sum, target, logits, max, targets *Tensor, lo, valid int)
	// LossOf is the sum over unmasked rows of log(sum) + max - target, added in float64.
	LossOf(sum, target, max, targets *Tensor) float64
	// LossGrad: logits = scale * (softmax - onehot(target)) in place; 0 in masked rows and padding.
	LossGrad(logits, max, sum, targets *Tensor, lo, valid int, scale float64)
}

// AdamW is the state of one update (Loshchilov & Hutter 2019, Algorithm 2). Step counts from 1.
type AdamW struct {
	Rate, Beta1, Beta2, Eps, Decay float64
	Step                           int
	Scale                          float64 // multiplies gradients first: the clipping factor, 1 for none
}

// SGD is w -= Rate * m with m = Momentum * m + (Scale * g + Decay * w).
type SGD struct{ Rate, Momentum, Decay, Scale float64 }

// Update is level 7: optimizer steps on flat slices, all of one length.
type Update interface {
	AdamW(w, g, m, v *Tensor, u AdamW)
	SGD(w, g, m *Tensor, u SGD) // m is nil when Momentum is 0
	// SumSquares is the sum of squares added in float64, in an order that depends on the length only.
	SumSquares(t *Tensor) float64
}
