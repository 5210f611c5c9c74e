package schedule

import (
	"fmt"
	"strings"
)

// Text writes a schedule as Parse reads it: a header, and a line a rank with all its ops.
//
//	schedule 1f1b
//	stages 2
//	microbatches 2
//	place 0 1
//	limit 2
//	0: 0F0 0F1 0B0 0B1 0R U
//	1: 1F0 1B0 1F1 1B1 1R U
func (s *Schedule) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule %s\nstages %d\nmicrobatches %d\nplace", s.Name, s.Stages, s.Micros)
	for _, r := range s.Place {
		fmt.Fprintf(&b, " %d", r)
	}
	b.WriteByte('\n')
	if s.Limit > 0 {
		fmt.Fprintf(&b, "limit %d\n", s.Limit)
	}
	for r, ops := range s.Ranks {
		fmt.Fprintf(&b, "%d:", r)
		for _, o := range ops {
			b.WriteByte(' ')
			b.WriteString(o.String())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String names a schedule and its sizes.
func (s *Schedule) String() string {
	return fmt.Sprintf("%s p=%d m=%d v=%d", s.Name, len(s.Ranks), s.Micros, s.Chunks())
}
