package schedule

import (
	"errors"
	"fmt"
)

// Verify proves that a schedule can be run, or says why not:
//   - every virtual stage has one rank, and all ranks hold equally many;
//   - every F, and either B or both I and W, occurs once per stage and microbatch, on the rank that holds it;
//   - every stage has one R, after its last weight gradient, and every rank one U, last;
//   - no rank holds more activations than Limit, where there is one;
//   - no op waits for itself through the ops' needs and the ranks' orders, so that ranks whose sends never
//     block come to the end;
//   - the lowering of Lower comes to the end under rendezvous, where a send blocks until it is received.
//
// The error lists all faults of the first kinds found, each with its rank and place.
func Verify(s *Schedule) error {
	t, err := index(s)
	if err != nil {
		return err
	}
	if _, err := t.order(); err != nil {
		return fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	if err := within(s); err != nil {
		return err
	}
	actions, err := Lower(s)
	if err != nil {
		return err
	}
	if err := Rendezvous(actions); err != nil {
		return fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return nil
}

// maxFaults bounds the faults that one error lists.
const maxFaults = 20

// faults gathers errors and drops those over maxFaults.
type faults struct {
	list []error
	more int
}

func (f *faults) add(format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Errorf(format, args...))
}

func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.list, fmt.Errorf("and %d more", f.more))...)
	}
	return errors.Join(f.list...)
}
