package schedule

import (
	"strings"
	"testing"
)

// tied is what a step makes among pipeline ranks: at U the sum of the copies of the embedding on the stages that hold it, then the norm.
func tied(s *Schedule) func(int, Op) []Meeting {
	first, last := s.Place[0], s.Place[s.Stages-1]
	all := make([]int, len(s.Ranks))
	for r := range all {
		all[r] = r
	}
	return func(r int, o Op) (list []Meeting) {
		if o.Kind != U {
			return nil
		}
		if first != last && (r == first || r == last) {
			list = append(list, Meeting{"tied", []int{min(first, last), max(first, last)}})
		}
		return append(list, Meeting{"norm", all})
	}
}

// TestMeetings: tied copies and norm, after the last op as a step makes them, stop no schedule.
func TestMeetings(t *testing.T) {
	every(t, func(t *testing.T, s *Schedule) {
		if s.Micros%5 != 0 {
			return // sixteen microbatches of every size add nothing
		}
		actions, err := Lower(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := Meet(actions, tied(s)); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	})
}

// TestMeetingsFound: a collective inside the backward, orders that differ, other members, and one that somebody leaves out are all found.
func TestMeetingsFound(t *testing.T) {
	s := OneFOneB(2, 2)
	actions, err := Lower(s)
	if err != nil {
		t.Fatal(err)
	}
	both := []int{0, 1}
	for _, c := range []struct {
		name string
		at   func(r int, o Op) []Meeting
		want string
	}{
		{"in each rank's own R", func(r int, o Op) []Meeting {
			if o.Kind == R {
				return []Meeting{{"sum", both}}
			}
			return nil
		}, ""}, // both come to it once all messages are through
		{"in the first backward", func(r int, o Op) []Meeting {
			if o.Kind == B && o.Micro == 0 {
				return []Meeting{{"sum", both}}
			}
			return nil
		}, "rank 1 in 1B0 waits for sum [0 1]"},
		{"in turned order", func(r int, o Op) []Meeting {
			list := []Meeting{{"a", both}, {"b", both}}
			if o.Kind != U {
				return nil
			}
			if r == 1 {
				list[0], list[1] = list[1], list[0]
			}
			return list
		}, "rank 0 in U waits for a [0 1]; rank 1 in U waits for b [0 1]"},
		{"left out", func(r int, o Op) []Meeting {
			if o.Kind == U && r == 0 {
				return []Meeting{{"norm", both}}
			}
			return nil
		}, "rank 0 in U waits for norm [0 1]"},
		{"other members", func(r int, o Op) []Meeting {
			if o.Kind == U && r == 0 {
				return []Meeting{{"norm", []int{0}}}
			} else if o.Kind == U {
				return []Meeting{{"norm", both}}
			}
			return nil
		}, "rank 1 in U waits for norm [0 1]"},
		{"no member", func(r int, o Op) []Meeting { return []Meeting{{"norm", []int{0, 7}}} }, "not among ranks"},
	} {
		err := Meet(actions, c.at)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
