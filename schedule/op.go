package schedule

import "fmt"

// Kind is what an op does with a pipeline stage.
type Kind uint8

const (
	F        Kind = iota // forward
	I                    // backward by the input: sends the gradient on to the stage before
	W                    // backward by the weights, needs I of the same stage and microbatch
	B                    // I and W in one
	R                    // reduce the stage's gradients over its replicas
	U                    // update the weights of all this rank's stages
	NumKinds = int(U) + 1
)

// String is the kind's letter.
func (k Kind) String() string { return string("FIWBRU"[k]) }

// Op is one entry of a schedule: kind, on a virtual stage, for a microbatch.
// Stages are numbered through the model from 0 (embedding) to Stages-1 (loss).
// Micro is 0 and without meaning for R and U; Stage is without meaning for U.
type Op struct {
	Stage int
	Kind  Kind
	Micro int
}

// String prints an op as schedules write it: "2F0" is the forward of microbatch 0 on stage 2; "2R", "U".
func (o Op) String() string {
	switch o.Kind {
	case U:
		return "U"
	case R:
		return fmt.Sprintf("%dR", o.Stage)
	}
	return fmt.Sprintf("%d%v%d", o.Stage, o.Kind, o.Micro)
}

// Schedule is who does what when: for every pipeline rank, its ops in order. It holds compute only;
// what a rank sends and receives follows from Needs.
type Schedule struct {
	Name   string
	Stages int    // virtual stages: ranks x chunks
	Micros int    // microbatches a step
	Place  []int  // Place[stage] is the pipeline rank that holds the stage
	Ranks  [][]Op // Ranks[r] is what pipeline rank r does, in order
	Limit  int    // the most activations that any rank holds at once (Peak.Held), which Verify proves; 0 promises nothing
}

// Chunks is the number of virtual stages a rank holds.
func (s *Schedule) Chunks() int { return s.Stages / len(s.Ranks) }

// Needs lists the ops that must be done before o may start, apart from the order on its own rank:
// F needs the stage before's F; I and B need the own F and the next stage's I or B; W needs the own I.
// kindOf(stage, micro) tells whether a stage does its backward as B or as I.
func (s *Schedule) Needs(o Op, kindOf func(stage, micro int) Kind) []Op {
	switch o.Kind {
	case F:
		if o.Stage > 0 {
			return []Op{{o.Stage - 1, F, o.Micro}}
		}
	case I, B:
		own := Op{o.Stage, F, o.Micro}
		if o.Stage < s.Stages-1 {
			return []Op{own, {o.Stage + 1, kindOf(o.Stage+1, o.Micro), o.Micro}}
		}
		return []Op{own}
	case W:
		return []Op{{o.Stage, I, o.Micro}}
	}
	return nil
}
