package nn

import (
	"slices"

	"triax/mesh"
	"triax/tensor"
)

// Param is the one ownership record of a parameter: what it is in the whole model, and which part of
// it this rank holds. Gradient reduction, clipping, ZeRO, checkpoints and the memory plan all read
// this record; none has a rule of its own.
type Param struct {
	Name  string // global, with the global layer index: "blocks.3.attn.q.weight"
	Shape []int  // logical shape in the whole model
	Init  Init   // starting values, a function of (seed, Name, logical index)
	Decay bool   // takes weight decay

	Adapter bool // one of the two of an Adapter
	Frozen  bool // does not learn: no gradient, no optimizer state; layers add into no Grad of it

	// The part held here: rows Lo up to Hi of dim Dim; all of it when Lo = 0 and Hi = Shape[Dim].
	// Local is the shape in memory; Local[Dim] may exceed Hi-Lo, and what is beyond is padding: zero
	// weights with zero gradients, in no norm and no checkpoint.
	Dim, Lo, Hi int
	Local       []int

	// Cut lists the axes (other than pipeline and data) along which peers hold other parts.
	Cut []mesh.Axis
	// Sum lists the groups over which gradients must be added besides the data axes: where this
	// rank's copy is a replica but its gradient only a partial sum.
	Sum []Span
	// Same lists the groups, data axes aside, whose members hold the same part. Sum is among them where
	// it is not empty; a replica whose ranks all compute the whole gradient has an entry here only.
	Same []Span
	// Counted is true on the one rank of each set of replicas (along the tensor, context and pipeline
	// axes, not data) that adds the parameter to norms and writes it to checkpoints.
	Counted bool
	// Tied is true where another pipeline rank holds a copy of the same parameter: gradients
	// are summed over the copies.
	Tied bool

	Data *tensor.Tensor // Local; set by the owner of the memory (package zero), may be absent between uses
	Grad *tensor.Tensor // Local; backward adds into it
}

// Span is a set of peers along an axis: consecutive runs of Size ranks; Size 0 means the whole axis.
type Span struct {
	Axis mesh.Axis
	Size int
}

// Expert says whether the parameter is cut over the expert axis, whose other ranks then hold other experts.
func (p *Param) Expert() bool { return slices.Contains(p.Cut, mesh.EP) }

// Len is the number of elements in memory on this rank, padding included.
func (p *Param) Len() int { return tensor.Elements(p.Local...) }

// Init describes starting values: normal with deviation Std, plus the constant Mean.
type Init struct{ Mean, Std float64 }
