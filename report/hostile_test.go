package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/plan"
)

// TestBrokenFolder: what is broken in a folder is a note, and the page is written all the same.
func TestBrokenFolder(t *testing.T) {
	whole := tinyRun(t)
	for _, c := range []struct{ file, text, note string }{
		{"trace.json", `{"traceEvents":[{"name":"0F0","ph":"X","ts":-5,"pid":0,"tid":0}]}`, "begins at -5"},
		{"trace.json", `{"traceEvents":[{"name":"<script>alert(1)</script>","ph":"X","ts":1,"pid":0,"tid":0}]}`, "trace.json is not shown"},
		{"trace.json", `{"traceEvents":`, "trace.json is not shown"},
		{"trace.json", `[1,2]`, "want a JSON object"},
		{"trace.json", `{"traceEvents":{}}`, "not a list"},
		{"trace.json", `{"traceEvents":[]}`, "no whole step"},
		{"trace.json", `{"traceEvents":[{"name":"0F0","ph":"X","ts":1e300,"dur":1e308,"pid":0,"tid":0}]}`, "trace.json is not shown"},
		{"metrics.jsonl", "{\"step\":1,\"loss\":\"NaN\",\"step_ms\":3}\n{\"step\":2,\"loss\":\"</title><script>\"}\n", "line 2"},
		{"metrics.jsonl", "\x00\x01\n", "line 1"},
		{"result.json", `{"ranks":1000000000,"memory":[]}`, "config.toml of 8"},
		{"result.json", `{"ranks":8,"memory":"x"}`, "result.json is not shown"},
		{"result.json", "", "result.json is not shown"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole.Folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRun(dir, nil)
		if err != nil {
			t.Errorf("%s %q: %v", c.file, c.text, err)
			continue
		}
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s %q: notes %q, want %q", c.file, c.text, notes, c.note)
		}
		p, err := plan.New(r.Config)
		if err != nil {
			t.Fatal(err)
		}
		if page := pageOf(t, Item{Name: "run", Plan: p, Run: r}); strings.Count(page, "<script>") != 1 {
			t.Errorf("%s %q: a script is in the page", c.file, c.text)
		}
	}
}

// TestNoFolder: a folder without a configuration, or whose files are folders, is refused or noted.
func TestNoFolder(t *testing.T) {
	if _, err := ReadRun(t.TempDir(), nil); err == nil {
		t.Error("an empty folder was read")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "trace.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRun(dir, nil)
	if err != nil || !strings.Contains(strings.Join(r.Notes, "\n"), "trace.json is not shown: not a file") {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzTrace: whatever a trace holds, reading ends with ops in order of the clock or an error.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"displayTimeUnit":"ms","traceEvents":[{"name":"0F0","cat":"F","ph":"X","ts":1,"dur":2,"pid":0,"tid":0},{"name":"U","ph":"X","ts":3,"dur":1,"pid":0,"tid":0,"args":{"waited_us":0.5}}]}`))
	f.Add([]byte(`{"traceEvents":[{"name":"9223372036854775807F0","ph":"X","pid":0}]}`))
	f.Add([]byte(`{"a":[[[[]]]],"traceEvents":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := readTrace(bytes.NewReader(text), []int{0, 1})
		if err != nil {
			return
		}
		for _, l := range g.Lanes {
			for _, o := range l.Ops {
				if !(o.End >= o.Start) || !(o.End < 2e9) {
					t.Errorf("%+v", o)
				}
			}
		}
		if _, err := pack(g); err != nil {
			t.Error(err)
		}
	})
}

// FuzzMetrics: lines of a run, and the curves drawn of them.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte("{\"step\":1,\"loss\":5.5,\"step_ms\":33.6}\n{\"step\":2,\"loss\":\"NaN\",\"held_out_loss\":\"+Inf\",\"step_ms\":1e308}\n"))
	f.Add([]byte("{\"step\":-9223372036854775808,\"loss\":-1e308,\"step_ms\":-1}\n{\"step\":9223372036854775807,\"loss\":1e308,\"step_ms\":1e308}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Run
		if r.metrics(bytes.NewReader(text)) != nil {
			return
		}
		for _, c := range curves(&r, 1) {
			if s := string(c.SVG); strings.Contains(s, `="NaN`) || strings.Contains(s, `="Inf`) || strings.Contains(s, "<script") {
				t.Errorf("%s", s)
			}
		}
	})
}
