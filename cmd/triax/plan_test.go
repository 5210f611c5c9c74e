package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"triax/plan"
	"triax/schedule"
)

// TestPlanTrace: the trace holds every op of the simulated schedule once, none over another on its rank, and ends when the planned step does.
func TestPlanTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	layout := []string{"plan", tinyFile, "--pp", "2", "--dp", "2", "--zero", "2", "--schedule", "zb-h1", "--microbatches", "4", "--set", "cluster.gpu=a100-80"}
	if out, code := call(t, append(layout, "--trace", file)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	text, code := call(t, append(layout, "--json")...)
	var p plan.Plan
	if err := json.Unmarshal([]byte(text), &p); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, text)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			TID      int
			TS, Dur  float64
		}
	}
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	s, err := schedule.New("zb-h1", 2, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen, free, end := map[string]int{}, map[int]float64{}, 0.0
	for _, e := range trace.TraceEvents {
		if e.Ph != "X" {
			continue
		}
		op, err := schedule.ParseOp(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if op.Kind != schedule.R && op.Kind != schedule.U { // a rank's reductions and updates have no stage of their own
			seen[e.Name]++
		}
		if e.TS < free[e.TID]-1e-3 {
			t.Errorf("%s of rank %d begins at %g us, before the op before it ends at %g", e.Name, e.TID, e.TS, free[e.TID])
		}
		free[e.TID] = e.TS + e.Dur
		end = max(end, free[e.TID])
	}
	ops := 0
	for _, rank := range s.Ranks {
		for _, o := range rank {
			if o.Kind == schedule.R || o.Kind == schedule.U {
				continue
			}
			ops++
			if seen[o.String()] != 1 {
				t.Errorf("%v is there %d times", o, seen[o.String()])
			}
		}
	}
	if len(seen) != ops {
		t.Errorf("%d ops, want %d", len(seen), ops)
	}
	if want := p.Step.Seconds * 1e6; math.Abs(end-want) > 1e-6*want {
		t.Errorf("the trace ends at %g us, the step at %g", end, want)
	}
	if out, code := call(t, append(layout, "--trace", "/does/not/exist/trace.json")...); code != exitRequest {
		t.Errorf("no folder: exit code %d: %s", code, out)
	}
}
