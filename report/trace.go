package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"triax/schedule"
	"triax/train"
)

// WriteTrace writes timelines in Chrome's trace train.TraceEvent format: a process a group, a thread a pipeline rank, an event an op.
func WriteTrace(w io.Writer, groups ...Group) error {
	events := []train.TraceEvent{}
	for g, group := range groups {
		events = append(events, train.TraceEvent{Name: "process_name", Ph: "M", PID: g, Args: map[string]any{"name": group.Name}})
		for r, lane := range group.Lanes {
			events = append(events, train.TraceEvent{Name: "thread_name", Ph: "M", PID: g, TID: r, Args: map[string]any{"name": lane.Label}})
			for _, o := range lane.Ops {
				e := train.TraceEvent{Name: o.Op.String(), Cat: o.Op.Kind.String(), Ph: "X", TS: o.Start * 1e6, Dur: (o.End - o.Start) * 1e6, PID: g, TID: r}
				if o.Peer+o.Transfer > 0 {
					e.Args = map[string]any{"waited_us": o.Peer * 1e6, "transfer_us": o.Transfer * 1e6}
				}
				events = append(events, e)
			}
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

// Bounds of what is read from a trace.
const (
	maxTrace  = 256 << 20
	maxEvents = 1 << 20
)

// readTrace takes the last whole step of the given ranks, one lane each, from what a run wrote. Everything else in the file is passed over.
func readTrace(r io.Reader, ranks []int) (Group, error) {
	g := Group{Name: "measured"}
	lanes := map[int]int{}
	for i, rank := range ranks {
		lanes[rank] = i
		g.Lanes = append(g.Lanes, Lane{Label: stageLabel(i)})
	}
	err := eachEvent(io.LimitReader(r, maxTrace), func(e train.TraceEvent) error {
		i, ours := lanes[e.PID]
		if !ours || e.Ph != "X" || e.TID != 0 {
			return nil
		}
		op, err := schedule.ParseOp(e.Name)
		if err != nil {
			return err
		}
		o := Span{Op: op, Start: e.TS / 1e6, End: (e.TS + e.Dur) / 1e6, Peer: argument(e, "waited_us") / 1e6, Transfer: argument(e, "transfer_us") / 1e6}
		if !(o.Start >= 0 && o.End >= o.Start && o.End < 1e9 && o.Peer >= 0 && o.Peer < 1e9 && o.Transfer >= 0 && o.Transfer < 1e9) {
			return fmt.Errorf("%s of rank %d: begins at %g us and takes %g us", e.Name, e.PID, e.TS, e.Dur)
		}
		g.Lanes[i].Ops = append(g.Lanes[i].Ops, o)
		return nil
	})
	if err != nil {
		return Group{}, err
	}
	return g, g.lastStep()
}

// argument is a number among an event's arguments, 0 where there is none.
func argument(e train.TraceEvent, name string) float64 {
	x, _ := e.Args[name].(float64)
	return x
}

// eachEvent reads the train.TraceEvents one by one, so that memory does not grow with what is passed over.
func eachEvent(r io.Reader, f func(train.TraceEvent) error) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("want a JSON object with traceEvents"), err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key != "traceEvents" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errors.Join(errors.New("traceEvents is not a list"), err)
		}
		for n := 0; d.More(); n++ {
			if n == maxEvents {
				return fmt.Errorf("more than %d events", maxEvents)
			}
			var e train.TraceEvent
			if err := d.Decode(&e); err != nil {
				return err
			}
			if err := f(e); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// lastStep keeps each lane's ops from its last but one update to its last, and begins the clock with the first of them.
func (g *Group) lastStep() error {
	first := 0.0
	for i := range g.Lanes {
		l := &g.Lanes[i]
		var ends []int
		for j, o := range l.Ops {
			if o.Op.Kind == schedule.U {
				ends = append(ends, j)
			}
		}
		if len(ends) == 0 {
			return fmt.Errorf("%s has no whole step", l.Label)
		}
		from := 0
		if n := len(ends); n > 1 {
			from = ends[n-2] + 1
		}
		l.Ops = l.Ops[from : ends[len(ends)-1]+1]
		begin := l.Ops[0].Start - l.Ops[0].Peer - l.Ops[0].Transfer
		if i == 0 || begin < first {
			first = begin
		}
	}
	for i := range g.Lanes {
		for j := range g.Lanes[i].Ops {
			g.Lanes[i].Ops[j].Start -= first
			g.Lanes[i].Ops[j].End -= first
		}
	}
	return nil
}
