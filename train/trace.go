package train

import (
	"fmt"
	"time"
)

// TraceEvent is one entry of a timeline in the Chrome trace event format, which Perfetto opens. Times are microseconds.
type TraceEvent struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	TS   float64        `json:"ts"`
	Dur  float64        `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	Args map[string]any `json:"args,omitempty"`
}

// trace is the timeline of the last steps: a process a rank, with a track for the ops of the schedule, named as it
// names them, and one for communication by axis.
func (r *records) trace() map[string]any {
	var events []TraceEvent
	var zero time.Time
	for _, s := range r.slots {
		for _, o := range s.ops {
			if zero.IsZero() || o.Start.Before(zero) {
				zero = o.Start
			}
		}
	}
	at := func(t time.Time) float64 { return float64(t.Sub(zero)) / 1e3 }
	for rank, s := range r.slots {
		events = append(events,
			TraceEvent{Name: "process_name", Ph: "M", PID: rank, Args: map[string]any{"name": fmt.Sprintf("rank %d", rank)}},
			TraceEvent{Name: "thread_name", Ph: "M", PID: rank, TID: 0, Args: map[string]any{"name": "compute"}},
			TraceEvent{Name: "thread_name", Ph: "M", PID: rank, TID: 1, Args: map[string]any{"name": "communication"}})
		for _, o := range s.ops {
			e := TraceEvent{Name: o.Op.String(), Cat: o.Op.Kind.String(), Ph: "X", TS: at(o.Start), Dur: float64(o.End.Sub(o.Start)) / 1e3, PID: rank}
			if o.Wait+o.Move > 0 {
				e.Args = map[string]any{"waited_us": float64(o.Wait) / 1e3, "transfer_us": float64(o.Move) / 1e3}
			}
			events = append(events, e)
		}
		for _, c := range s.calls {
			if c.Start.Before(zero) {
				continue
			}
			events = append(events, TraceEvent{
				Name: fmt.Sprintf("%s %s", c.Axis, c.Kind), Cat: c.Axis, Ph: "X", TS: at(c.Start), Dur: float64(c.Wait+c.Move) / 1e3, PID: rank, TID: 1,
				Args: map[string]any{"bytes": c.Bytes, "waited_us": float64(c.Wait) / 1e3},
			})
		}
	}
	return map[string]any{"traceEvents": events, "displayTimeUnit": "ms"}
}
