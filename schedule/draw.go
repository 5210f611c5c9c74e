package schedule

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxColumns bounds a drawing's width in units of time.
const maxColumns = 4096

// Draw writes a schedule as it runs under costs: a line a rank, a column a unit of time, an op from where it
// starts. "F0" is the forward of microbatch 0, "4F0" that on virtual stage 4 where ranks hold several, "--" more
// of the same op, "." an idle unit. Ops that take no time are not drawn.
//
// The first line gives the costs, the makespan, the idle share of the whole step, and every rank's peak of
// saved activations; where input and weight gradients are split, "held" counts what W still needs as well. All
// times are in the greatest unit that divides every one of them, which is named unless it is a nanosecond.
func Draw(s *Schedule, c Costs) (string, error) {
	t, err := Simulate(s, c)
	if err != nil {
		return "", err
	}
	d := drawing{s: s, t: t, unit: unit(t)}
	if t.Makespan/d.unit > maxColumns {
		return "", fmt.Errorf("schedule %s: drawing %v in units of %v needs more than %d columns: draw with rounder times or fewer microbatches",
			s.Name, t.Makespan, d.unit, maxColumns)
	}
	d.measure()
	d.header()
	digits := len(strconv.Itoa(len(s.Ranks) - 1))
	for r := range s.Ranks {
		fmt.Fprintf(&d.b, "%*d|", digits, r)
		d.line(r)
	}
	return d.b.String(), nil
}

type drawing struct {
	s     *Schedule
	t     *Timeline
	unit  time.Duration
	width int
	b     strings.Builder
}

// unit is the greatest common divisor of all starts and ends.
func unit(t *Timeline) time.Duration {
	var g time.Duration
	for _, spans := range t.Ranks {
		for _, s := range spans {
			for _, x := range [2]time.Duration{s.Start, s.End} {
				for x != 0 {
					g, x = x, g%x
				}
			}
		}
	}
	return max(g, 1)
}

// label is how an op is drawn: without its stage where every rank has but one.
func (d *drawing) label(o Op) string {
	switch {
	case d.s.Chunks() > 1 || o.Kind == U:
		return o.String()
	case o.Kind == R:
		return "R"
	}
	return fmt.Sprintf("%v%d", o.Kind, o.Micro)
}

// measure finds the width of a unit: that of the widest label.
func (d *drawing) measure() {
	d.width = 2
	for _, spans := range d.t.Ranks {
		for _, s := range spans {
			if s.End > s.Start {
				d.width = max(d.width, len(d.label(s.Op)))
			}
		}
	}
}

func (d *drawing) header() {
	s := d.s
	fmt.Fprintf(&d.b, "%s   p=%d m=%d", s.Name, len(s.Ranks), s.Micros)
	if v := s.Chunks(); v > 1 {
		fmt.Fprintf(&d.b, " v=%d", v)
	}
	fmt.Fprintf(&d.b, " %s      makespan %d   idle %.0f%%   in flight", d.costs(), d.t.Makespan/d.unit, math.Round(100*d.t.Bubble()))
	peaks := Peaks(s)
	split := false
	for _, p := range peaks {
		fmt.Fprintf(&d.b, " %d", p.InFlight)
		split = split || p.Residue > 0
	}
	if split {
		d.b.WriteString("   held")
		for _, p := range peaks {
			fmt.Fprintf(&d.b, " %d", p.Held)
		}
	}
	if d.unit != 1 {
		fmt.Fprintf(&d.b, "   unit %v", d.unit)
	}
	d.b.WriteByte('\n')
}

// costs is " F=1 B=2": every kind that takes time, a range where its ops differ.
func (d *drawing) costs() string {
	var out strings.Builder
	for _, k := range []Kind{F, I, W, B, R, U} {
		least, most := time.Duration(math.MaxInt64), time.Duration(0)
		for _, spans := range d.t.Ranks {
			for _, s := range spans {
				if s.Op.Kind == k {
					least, most = min(least, s.End-s.Start), max(most, s.End-s.Start)
				}
			}
		}
		switch {
		case most == 0:
		case least == most:
			fmt.Fprintf(&out, " %v=%d", k, most/d.unit)
		default:
			fmt.Fprintf(&out, " %v=%d..%d", k, least/d.unit, most/d.unit)
		}
	}
	return out.String()
}

// line draws one rank, without the idle units after its last op. Reductions beside compute are left out.
func (d *drawing) line(r int) {
	var now time.Duration
	for _, s := range d.t.Ranks[r] {
		if s.End == s.Start || d.t.besides(s.Op) {
			continue
		}
		for ; now < s.Start; now += d.unit {
			fmt.Fprintf(&d.b, "%*s", d.width, ".")
		}
		label := d.label(s.Op)
		d.b.WriteString(label)
		d.b.WriteString(strings.Repeat("-", int((s.End-s.Start)/d.unit)*d.width-len(label)))
		now = s.End
	}
	d.b.WriteByte('\n')
}
