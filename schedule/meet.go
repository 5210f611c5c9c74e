package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Meeting is a collective that pipeline ranks make together while they run an op: the sum of tied copies, the norm of the whole gradient.
type Meeting struct {
	Name  string
	Ranks []int // its members, ascending
}

func (m Meeting) String() string { return fmt.Sprintf("%s %v", m.Name, m.Ranks) }

// Meet proves that the lists of actions come to their end when, besides messages without buffers, ranks make collectives: at(r, o) is
// those that rank r makes in op o, in order. No member passes a collective before all have come to it, so all members must come to the same
// ones in the same order, across all groups and messages. If they do not, the error names the ranks and where each of them stands.
//
// As in Rendezvous one walk decides: what a rank stands at fixes whom it waits for.
func Meet(actions [][]Action, at func(rank int, o Op) []Meeting) error {
	w := &walk{actions: actions, at: at, pos: make([]int, len(actions)), due: make([][]Meeting, len(actions))}
	for moved := true; moved; {
		moved = false
		for r := range actions {
			for {
				ok, err := w.step(r)
				if err != nil {
					return err
				}
				if !ok {
					break
				}
				moved = true
			}
		}
	}
	return w.stuck()
}

// walk is how far each rank has come: the action it stands at, and those meetings of it that are still due.
type walk struct {
	actions [][]Action
	at      func(rank int, o Op) []Meeting
	pos     []int
	due     [][]Meeting
}

// step moves rank r, and whom it meets, by one meeting or action; ok is false where r has to wait or has ended.
func (w *walk) step(r int) (ok bool, err error) {
	if len(w.due[r]) > 0 {
		return w.gather(w.due[r][0])
	}
	if w.pos[r] == len(w.actions[r]) {
		return false, nil
	}
	a := w.actions[r][w.pos[r]]
	if a.Verb == Compute {
		w.pos[r]++
		w.due[r] = slices.Clone(w.at(r, a.Op))
		for _, m := range w.due[r] {
			if !slices.Contains(m.Ranks, r) || slices.ContainsFunc(m.Ranks, func(x int) bool { return x < 0 || x >= len(w.actions) }) {
				return false, fmt.Errorf("rank %d, %v: %v is not among ranks 0 to %d with it as a member", r, a, m, len(w.actions)-1)
			}
		}
		return true, nil
	}
	if a.Peer >= 0 && a.Peer < len(w.due) && len(w.due[a.Peer]) > 0 {
		return false, nil
	}
	ok, err = meets(w.actions, w.pos, r)
	if ok {
		w.pos[r]++
		w.pos[a.Peer]++
	}
	return ok, err
}

// gather lets a meeting happen if it is the next of all its members.
func (w *walk) gather(m Meeting) (bool, error) {
	for _, r := range m.Ranks {
		if len(w.due[r]) == 0 || w.due[r][0].Name != m.Name {
			return false, nil
		}
		if other := w.due[r][0]; !slices.Equal(other.Ranks, m.Ranks) {
			return false, fmt.Errorf("%v and %v: rank %d sees other members", m, other, r)
		}
	}
	for _, r := range m.Ranks {
		w.due[r] = w.due[r][1:]
	}
	return true, nil
}

// stuck names where every rank stands that has not come to its end.
func (w *walk) stuck() error {
	var waits []string
	for r := range w.actions {
		switch {
		case len(w.due[r]) > 0:
			waits = append(waits, fmt.Sprintf("rank %d in %v waits for %v", r, w.actions[r][w.pos[r]-1], w.due[r][0]))
		case w.pos[r] < len(w.actions[r]):
			waits = append(waits, fmt.Sprintf("rank %d waits to %v", r, w.actions[r][w.pos[r]]))
		}
	}
	if len(waits) == 0 {
		return nil
	}
	return fmt.Errorf("collectives in another order: %s", strings.Join(waits, "; "))
}
