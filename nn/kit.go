package nn

// Kit makes the layers that differ between a whole model and a tensor-parallel slice of it. Model code is
// written once against it: Serial makes whole layers, tp.Kit this rank's slice.
// Activations between layers are [T' D]; T' = Rows(T) is T, or T/t where sequence parallelism cuts tokens.
type Kit interface {
	// Rows is the number of tokens, out of T, that this rank holds between layers: of its batch,
	// tokens lo up to hi.
	Rows(T int) (lo, hi int)
	// Column cuts outputs: each part's Out features over the group. x [T' In] → ys[i] [T Out_i/t].
	Column(name string, in int, parts ...Part) Linear
	// Row cuts inputs: x [T In/t] → ys[0] [T' Out]; the bias is added once, after the sum.
	Row(name string, in int, out Part) Linear
	// Replicated marks a parameter that every rank of the group holds whole (norms, positions).
	Replicated(p *Param) *Param
	// Partial marks a parameter that every rank holds whole but uses on its own features only, so that its gradient there is a
	// partial sum (norms of heads).
	Partial(p *Param) *Param
	// Embedding is the token table: ids from the batch → [T' D]. x is nil; BackwardInput returns nil.
	Embedding(table *Param) Layer
	// Head is the output matrix: x [T' D] → logits [T V'/t]. It may share table with Embedding.
	Head(table *Param) Layer
	// Loss turns logits into the loss [1] (float64 on the host side of the device: see LossValue): the sum over this
	// microbatch's valid tokens times Batch.Scale. BackwardInput takes a nil dy.
	Loss(vocab int) Layer
	// Table makes the parameter of an embedding or output matrix [V D], cut by rows and padded.
	Table(name string, vocab, width int, init Init) *Param
	// Core is how the heads attend: alone, or with the context ranks that hold the samples' other tokens.
	Core() Core
	// Experts is how expert layers are shared out.
	Experts() Experts
	// Heads is how many of n attention heads this rank has, and the first one's number.
	Heads(n int) (count, first int)
}

// Part is one output matrix of a Linear. Unit is the number of rows that must stay together (a head);
// 0 means 1.
type Part struct {
	Name string // appended to the linear's name: "q" gives "blocks.0.attn.q.weight"; "" adds nothing
	Out  int
	Unit int
	Bias bool
	Init Init
	// Rank of an Adapter beside it, 0 for none, and its scale.
	Rank  int
	Scale float64
}
