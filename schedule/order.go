package schedule

import (
	"fmt"
	"strings"
)

// place is where an op stands: its rank, and its slot in the rank's list.
type place struct{ rank, slot int32 }

// order proves that the needs of the ops and the order on every rank have no cycle, and returns all ops in an
// order that respects both. It walks all lists, an op stepping once its needs have. Needs and orders only ever
// delay, so one walk decides it for every timing.
func (t *table) order() ([]place, error) {
	s := t.s
	at := make([]int, len(s.Ranks)) // how far each rank has come
	waits := make([]Op, len(s.Ranks))
	var out []place
	for moved := true; moved; {
		moved = false
		for r, ops := range s.Ranks {
			for at[r] < len(ops) {
				need, ok := t.blocker(ops[at[r]], at)
				if !ok {
					waits[r] = need
					break
				}
				out = append(out, place{int32(r), int32(at[r])})
				at[r]++
				moved = true
			}
		}
	}
	for r := range s.Ranks {
		if at[r] < len(s.Ranks[r]) {
			return nil, t.cycle(r, at, waits)
		}
	}
	return out, nil
}

// blocker is the first need of o that has not been done when ranks have come as far as at; ok if there is none.
func (t *table) blocker(o Op, at []int) (need Op, ok bool) {
	for _, n := range t.s.Needs(o, t.kindOf) {
		if int(t.at[n.Kind][t.cell(n.Stage, n.Micro)]) >= at[t.s.Place[n.Stage]] {
			return n, false
		}
	}
	return Op{}, true
}

// cycle names the ring of ranks that wait for one another, found by following the waits from rank r.
func (t *table) cycle(r int, at []int, waits []Op) error {
	s := t.s
	seen := make([]bool, len(s.Ranks))
	for !seen[r] {
		seen[r] = true
		r = s.Place[waits[r].Stage]
	}
	var ring []string
	for first := r; ; {
		next := s.Place[waits[r].Stage]
		ring = append(ring, fmt.Sprintf("rank %d at %v waits for %v of rank %d", r, s.Ranks[r][at[r]], waits[r], next))
		if r = next; r == first {
			return fmt.Errorf("deadlock: %s", strings.Join(ring, "; "))
		}
	}
}
