package report

import (
	"encoding/json"
	"math"
	"strconv"

	"triax/plan"
	"triax/schedule"
)

// Group is a timeline of one kind: what was planned, or what was measured.
type Group struct {
	Name  string
	Lanes []Lane
}

// Lane is one pipeline rank.
type Lane struct {
	Label string
	Ops   []Span
}

// Span is an op on the clock, in seconds from the step's beginning; Peer and Transfer are the parts of the idle time before it that went into waiting
// until another rank had its input, and into moving that. The rest of a gap had nothing to do.
type Span struct {
	Op             schedule.Op
	Start, End     float64
	Peer, Transfer float64
}

// planned is a plan's timeline.
func planned(p *plan.Plan) Group {
	g := Group{Name: "predicted"}
	if p.Step.Timeline == nil {
		return g
	}
	for r, ops := range p.Step.Timeline.Ranks {
		lane := Lane{Label: stageLabel(r), Ops: make([]Span, len(ops))}
		for i, o := range ops {
			lane.Ops[i] = Span{Op: o.Op, Start: o.Start.Seconds(), End: o.End.Seconds(), Peer: o.Peer.Seconds(), Transfer: o.Transfer.Seconds()}
		}
		g.Lanes = append(g.Lanes, lane)
	}
	return g
}

func stageLabel(r int) string { return "pp" + strconv.Itoa(r) }

// end is the last moment of a group.
func (g Group) end() (t float64) {
	for _, l := range g.Lanes {
		for _, o := range l.Ops {
			t = max(t, o.End)
		}
	}
	return t
}

// packed is a timeline as the page's script reads it. A lane's ops are columns of whole numbers: letters of kinds, microbatches, virtual stages,
// gaps before each op and lengths, in millionths of the whole; waits are few and name their op. A plan's lengths depend on kind and stage alone and
// gaps are mostly 0, so thousands of ops are small.
type packed struct {
	Unit   float64       `json:"unit"` // seconds
	Groups []packedGroup `json:"groups"`
}

type packedGroup struct {
	Name  string       `json:"name"`
	Lanes []packedLane `json:"lanes"`
}

type packedLane struct {
	Label string  `json:"label"`
	Kinds string  `json:"k"`
	Micro []int   `json:"m"`
	Stage []int   `json:"s"` // one entry where all are alike
	Gap   []int   `json:"g"`
	Len   []int   `json:"d"`
	Waits [][]int `json:"w"` // index, waiting, transferring
}

// pack encodes groups on one scale.
func pack(groups ...Group) ([]byte, error) {
	most := 0.0
	for _, g := range groups {
		most = max(most, g.end())
	}
	if !(most > 0) {
		most = 1
	}
	out := packed{Unit: most / 1e6}
	for _, g := range groups {
		pg := packedGroup{Name: g.Name}
		for _, l := range g.Lanes {
			pg.Lanes = append(pg.Lanes, packLane(l, out.Unit))
		}
		out.Groups = append(out.Groups, pg)
	}
	return json.Marshal(out)
}

func packLane(l Lane, unit float64) packedLane {
	whole := func(s float64) int { return int(math.Round(s / unit)) }
	p := packedLane{Label: l.Label, Micro: []int{}, Stage: []int{}, Gap: []int{}, Len: []int{}, Waits: [][]int{}}
	kinds := make([]byte, len(l.Ops))
	at, alike := 0, true
	for i, o := range l.Ops {
		kinds[i] = o.Op.Kind.String()[0]
		start, length := whole(o.Start), whole(o.End-o.Start)
		p.Micro, p.Stage = append(p.Micro, o.Op.Micro), append(p.Stage, o.Op.Stage)
		p.Gap, p.Len = append(p.Gap, start-at), append(p.Len, length)
		at = start + length
		alike = alike && (o.Op.Stage == l.Ops[0].Op.Stage || o.Op.Kind == schedule.U)
		if w, x := whole(o.Peer), whole(o.Transfer); w+x > 0 {
			p.Waits = append(p.Waits, []int{i, w, x})
		}
	}
	if alike && len(l.Ops) > 0 {
		p.Stage = p.Stage[:1]
	}
	p.Kinds = string(kinds)
	return p
}
