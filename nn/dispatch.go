package nn

import "triax/tensor"

// dispatch brings a microbatch's slots to the ranks that hold their experts, and back:
//
//	slots (by expert) ─ send, padded to the largest part ─ exchange ─ receive ─ rows (by own expert, then sender)
//
// Every part of the exchange is as long as the longest of all, so no token is lost and parts are of one size.
type dispatch struct {
	ranks  Experts
	slots  int
	rows   int   // received, padding left out
	counts []int // rows of each of this rank's experts
	// Tables of row numbers for tensor.Embed; -1 makes a row of zeros.
	tokens    *tensor.Tensor // [slots] token of each slot
	sendToken *tensor.Tensor // [g C] token to send
	sendSlot  *tensor.Tensor // [g C] the same by slot
	order     *tensor.Tensor // [rows] where each row was received
	inverse   *tensor.Tensor // [g C] which row to send back
	slotRow   *tensor.Tensor // [slots] where each slot comes back
}

func (d *dispatch) Release() {
	for _, t := range []*tensor.Tensor{d.tokens, d.sendToken, d.sendSlot, d.order, d.inverse, d.slotRow} {
		t.Release()
	}
}

// newDispatch tells every rank how many slots it will get, and lays out both ways.
func newDispatch(ctx *Ctx, ranks Experts, r *route) (*dispatch, error) {
	g := ranks.Ranks()
	own := len(r.counts) / g
	parts := make([]int, g) // slots for each rank
	longest := 0
	for j := range g {
		for _, n := range r.counts[j*own : (j+1)*own] {
			parts[j] += n
		}
		longest = max(longest, parts[j])
	}
	got, chunk, err := agree(ctx, ranks, r.counts, longest)
	if err != nil {
		return nil, err
	}
	d := &dispatch{ranks: ranks, slots: len(r.tokens), counts: make([]int, own)}
	up := func(v []int32) *tensor.Tensor {
		t := ctx.Dev.Heap().New(tensor.Workspace, tensor.I32, len(v))
		ctx.Dev.UploadI32(t, v)
		return t
	}
	sendToken, sendSlot, inverse := filled(g*chunk), filled(g*chunk), filled(g*chunk)
	slotRow := make([]int32, d.slots)
	slot := 0
	for j, n := range parts {
		for i := range n {
			at := j*chunk + i
			sendToken[at], sendSlot[at], slotRow[slot] = r.tokens[slot], int32(slot), int32(at)
			slot++
		}
	}
	var order []int32
	for e := range own {
		for src := range g {
			at := src * chunk
			for before := range e {
				at += got[src*own+before]
			}
			for i := range got[src*own+e] {
				inverse[at+i] = int32(len(order))
				order = append(order, int32(at+i))
			}
			d.counts[e] += got[src*own+e]
		}
	}
	d.rows = len(order)
	d.tokens, d.sendToken, d.sendSlot = up(r.tokens), up(sendToken), up(sendSlot)
	d.order, d.inverse, d.slotRow = up(order), up(inverse), up(slotRow)
	return d, nil
}

func filled(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = -1
	}
	return v
}

// agree exchanges the counts: got[src*own+e] is what rank src sends for this rank's expert e. chunk is the longest part anywhere.
func agree(ctx *Ctx, ranks Experts, counts []int, longest int) (got []int, chunk int, err error) {
	heap := ctx.Dev.Heap()
	src, dst, top := heap.New(tensor.Workspace, tensor.F64, len(counts)), heap.New(tensor.Workspace, tensor.F64, len(counts)), heap.New(tensor.Workspace, tensor.F64, 1)
	defer src.Release()
	defer dst.Release()
	defer top.Release()
	v := make([]float64, len(counts))
	for i, n := range counts {
		v[i] = float64(n)
	}
	ctx.Dev.Upload(src, v)
	ctx.Dev.Upload(top, []float64{float64(longest)})
	if err := ranks.Exchange(ctx, ctx.Dev, dst, src); err != nil {
		return nil, 0, err
	}
	if err := ranks.Max(ctx, top); err != nil {
		return nil, 0, err
	}
	ctx.Dev.Download(v, dst)
	got = make([]int, len(v))
	for i, x := range v {
		got[i] = int(x)
	}
	if ctx.Even { // every rank sends what this one does, and nothing was written
		own := len(counts) / ranks.Ranks()
		for i := range got {
			got[i] = counts[i%own]
		}
		return got, longest, nil
	}
	var t [1]float64
	ctx.Dev.Download(t[:], top)
	return got, int(t[0]), nil
}

// there brings rows of x, chosen by send for every place of the exchange, to their experts: [rows D].
func (d *dispatch) there(ctx *Ctx, x, send *tensor.Tensor) (*tensor.Tensor, error) {
	width := x.Shape[1]
	out, in := ctx.Dev.New(tensor.Buffers, send.Len(), width), ctx.Dev.New(tensor.Buffers, send.Len(), width)
	defer out.Release()
	defer in.Release()
	ctx.Dev.Embed(out, x, send, 0)
	if err := d.ranks.Exchange(ctx, ctx.Dev, in, out); err != nil {
		return nil, err
	}
	y := ctx.Dev.New(tensor.Activations, d.rows, width)
	ctx.Dev.Embed(y, in, d.order, 0)
	return y, nil
}

// back brings the experts' rows back to their slots: [slots D].
func (d *dispatch) back(ctx *Ctx, y *tensor.Tensor) (*tensor.Tensor, error) {
	width := y.Shape[1]
	out, in := ctx.Dev.New(tensor.Buffers, d.inverse.Len(), width), ctx.Dev.New(tensor.Buffers, d.inverse.Len(), width)
	defer out.Release()
	defer in.Release()
	ctx.Dev.Embed(out, y, d.inverse, 0)
	if err := d.ranks.Exchange(ctx, ctx.Dev, in, out); err != nil {
		return nil, err
	}
	slots := ctx.Dev.New(tensor.Activations, d.slots, width)
	ctx.Dev.Embed(slots, in, d.slotRow, 0)
	return slots, nil
}

// each calls f with the rows [lo, hi) of every expert of this rank that has any.
func (d *dispatch) each(f func(e, lo, hi int)) {
	at := 0
	for e, n := range d.counts {
		if n > 0 {
			f(e, at, at+n)
		}
		at += n
	}
}
