package pp

import "triax/schedule"

// ForwardOnly is the line-up for evaluation: the stages of s at their places, each rank running the
// forwards of micros microbatches stage by stage, and nothing else.
func ForwardOnly(s *schedule.Schedule, micros int) *schedule.Schedule {
	e := &schedule.Schedule{Name: "forward", Stages: s.Stages, Micros: micros, Place: s.Place, Ranks: make([][]schedule.Op, len(s.Ranks))}
	for stage, rank := range s.Place {
		for i := range micros {
			e.Ranks[rank] = append(e.Ranks[rank], schedule.Op{Stage: stage, Kind: schedule.F, Micro: i})
		}
	}
	return e
}
