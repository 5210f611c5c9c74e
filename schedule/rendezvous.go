package schedule

import (
	"fmt"
	"strings"
)

// Rendezvous proves that the lists of actions come to their end when nothing is buffered: a send and its
// receive happen together, when both ranks have come to them. If not it names the ring of ranks that wait, or
// the two ranks whose messages cross. One walk decides: a rank at a message waits for one certain peer, so no
// choice and no timing changes what can happen. It does not check that an op's input has been received.
func Rendezvous(actions [][]Action) error {
	at := make([]int, len(actions))
	todo := make([]int, len(actions)) // ranks that may be able to step
	for r := range todo {
		todo[r] = r
	}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for at[r] < len(actions[r]) {
			a := actions[r][at[r]]
			if a.Verb == Compute {
				at[r]++
				continue
			}
			met, err := meets(actions, at, r)
			if err != nil {
				return err
			}
			if !met {
				break
			}
			at[r]++
			at[a.Peer]++
			todo = append(todo, a.Peer)
		}
	}
	for r := range actions {
		if at[r] < len(actions[r]) {
			return ring(actions, at, r)
		}
	}
	return nil
}

// meets tells whether rank r's message is met by its peer's next action.
func meets(actions [][]Action, at []int, r int) (bool, error) {
	a := actions[r][at[r]]
	if a.Peer < 0 || a.Peer >= len(actions) || a.Peer == r {
		return false, fmt.Errorf("rank %d, action %d (%v): no such peer", r, at[r], a)
	}
	if at[a.Peer] >= len(actions[a.Peer]) {
		return false, nil
	}
	b := actions[a.Peer][at[a.Peer]]
	if b.Verb == Compute || b.Peer != r || a.Verb == b.Verb {
		return false, nil
	}
	if a.Op != b.Op {
		return false, fmt.Errorf("messages cross: rank %d at %q meets rank %d at %q", r, a, a.Peer, b)
	}
	return true, nil
}

// ring names the ranks that wait for one another, found by following the peers from rank r.
func ring(actions [][]Action, at []int, r int) error {
	seen := make([]bool, len(actions))
	for !seen[r] {
		seen[r] = true
		a := actions[r][at[r]]
		if at[a.Peer] >= len(actions[a.Peer]) {
			return fmt.Errorf("deadlock under rendezvous: rank %d waits to %v; rank %d has ended", r, a, a.Peer)
		}
		r = a.Peer
	}
	var waits []string
	for first := r; ; {
		a := actions[r][at[r]]
		waits = append(waits, fmt.Sprintf("rank %d waits to %v", r, a))
		if r = a.Peer; r == first {
			return fmt.Errorf("deadlock under rendezvous: %s", strings.Join(waits, "; "))
		}
	}
}
