package nn

// Serial makes whole layers: the uncut model, which every cut must equal. It implements Kit.
type Serial struct{}

var _ Kit = Serial{}

// Rows is all T.
func (Serial) Rows(T int) (lo, hi int) { return 0, T }

// Heads is all n.
func (Serial) Heads(n int) (count, first int) { return n, 0 }

// Core works alone.
func (Serial) Core() Core { return OneDevice{} }

// Experts has all of them.
func (Serial) Experts() Experts { return OneRank{} }

// Replicated holds all of p.
func (Serial) Replicated(p *Param) *Param { return whole(p) }

// Partial holds all of p, and computes all of its gradient.
func (Serial) Partial(p *Param) *Param { return whole(p) }

// Table is the whole [V D] table.
func (Serial) Table(name string, vocab, width int, init Init) *Param {
	return whole(&Param{Name: name, Shape: []int{vocab, width}, Init: init, Decay: true})
}

// Column is a plain linear layer with one output for each part.
func (Serial) Column(name string, in int, parts ...Part) Linear { return newLinear(name, in, parts...) }

// Row is a plain linear layer with one output.
func (Serial) Row(name string, in int, out Part) Linear { return newLinear(name, in, out) }

// Embedding looks up all tokens.
func (Serial) Embedding(table *Param) Layer { return &embedding{table} }

// Head multiplies by the whole table.
func (Serial) Head(table *Param) Layer { return &head{linear{parts: []linearPart{{w: table}}}} }

// Loss is cross-entropy over the whole vocabulary.
func (Serial) Loss(vocab int) Layer { return &loss{vocab} }

func whole(p *Param) *Param {
	p.Dim, p.Lo, p.Hi = 0, 0, p.Shape[0]
	p.Local = append([]int(nil), p.Shape...)
	p.Counted = true
	return p
}
