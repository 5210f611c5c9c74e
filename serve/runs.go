package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"triax/plan"
	"triax/report"
)

// stamp tells whether a run's folder has changed.
func stamp(folder string) (out string) {
	for _, name := range []string{"config.toml", "metrics.jsonl", "result.json", "trace.json"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
			out += fmt.Sprintf("%d.%d;", info.Size(), info.ModTime().UnixNano())
		}
	}
	return out
}

// run answers with a run's folder beside its plan, unless nothing in it changed since the stamp that is sent.
func (s *Server) run(r *http.Request) (answer, error) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || n < 0 || n >= len(s.options.Runs) {
		return nil, fmt.Errorf("no such run: %d were named", len(s.options.Runs))
	}
	folder := s.options.Runs[n]
	now := stamp(folder)
	if now == r.URL.Query().Get("stamp") {
		return answer{"stamp": now}, nil
	}
	run, err := report.ReadRun(folder, nil)
	if err != nil {
		return nil, err
	}
	if err := drawable(run.Config); err != nil {
		return nil, err
	}
	p, err := plan.New(run.Config)
	if err != nil {
		return nil, err
	}
	i := report.Item{Name: filepath.Base(folder), Plan: p, Run: run}
	var b bytes.Buffer
	if err := report.WriteItem(&b, MaxLayouts+n, i); err != nil {
		return nil, err
	}
	if err := report.WriteTable(&b, []report.Item{i}); err != nil {
		return nil, err
	}
	return answer{"html": b.String(), "stamp": now, "ended": run.Result != nil}, nil
}
