package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"triax/configs"
	"triax/data"
	"triax/train"
)

// watched is a small run on eight ranks with its monitor, and log lines.
func watched(t *testing.T, format string) (*Monitor, *train.Result, string) {
	t.Helper()
	cfg, err := configs.Parse([]byte("[mesh]\ndp = 2\npp = 2\ntp = 2\n[pipeline]\nmicrobatches = 2\n[zero]\nstage = 2\n[train]\nsteps = 3\nbatch = 8\n[optim]\nwarmup = 1\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := data.Of(data.Bytes{}, 0.2, strings.Repeat("watch this run. ", 300))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l, err := NewLogger(&log, format, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	m := New()
	m.Measure(func() ([]Usage, error) { return []Usage{{Name: "stand-in", Watts: 300, Joules: 1, Counted: true}}, nil })
	res, err := train.Run(context.Background(), cfg, train.Options{
		Corpus: corpus,
		OnStep: func(p train.Progress) { m.Step(p); l.Step(p) },
		OnRank: func(s train.RankStep) { m.Rank(s); l.Rank(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, res, log.String()
}

// scrape reads the endpoint: values by name and labels.
func scrape(t *testing.T, m *Monitor) map[string]float64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	where, err := m.Serve(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://" + where + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndexByte(line, ' '); line[0] != '#' && at > 0 {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err == nil {
				out[line[:at]] = v
			}
		}
	}
	return out
}

// TestEndpoint: what is scraped is what the run's own result says.
func TestEndpoint(t *testing.T) {
	m, res, _ := watched(t, "json")
	got := scrape(t, m)
	for name, want := range map[string]float64{
		"triax_step": 3, "triax_steps": 3, "triax_loss": res.Loss[2], "triax_gradient_norm": res.GradNorm[2], "triax_tokens_total": float64(res.Tokens),
		"triax_held_out_loss": res.Eval[0].Loss, "triax_step_seconds_count": 3, "triax_skipped_steps_total": 0,
		`triax_memory_peak_bytes{kind="optimizer",place="` + "dp1 pp0 tp1" + `",rank="3"}`: float64(res.Memory[3].Optimizer),
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (there: %v), want %v", name, v, ok, want)
		}
	}
	for _, e := range res.Comm {
		sum := 0.0
		for name, v := range got {
			if strings.HasPrefix(name, "triax_comm_bytes_total{") && strings.Contains(name, `axis="`+e.Axis+`"`) && strings.Contains(name, `kind="`+string(e.Kind)+`"`) {
				sum += v
			}
		}
		if sum != float64(3*e.Bytes) {
			t.Errorf("%s %s: %.0f bytes scraped, %d run in 3 steps", e.Axis, e.Kind, sum, 3*e.Bytes)
		}
	}
	if b := got["triax_bubble_ratio"]; b <= 0 || b >= 1 {
		t.Errorf("bubble %v", b)
	}
}

// TestDashboard: every metric that the dashboard asks for is there, and every one that is there is shown.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var any map[string]any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	m, _, _ := watched(t, "text")
	names := map[string]bool{}
	for name := range scrape(t, m) {
		name, _, _ = strings.Cut(name, "{")
		if strings.HasPrefix(name, "triax_") {
			names[strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")] = true
		}
	}
	delete(names, "triax_step_seconds") // shown by its buckets
	asked := map[string]bool{}
	for _, name := range regexp.MustCompile(`triax_\w+`).FindAllString(string(text), -1) {
		asked[name] = true
		if !names[name] {
			t.Errorf("%s is asked for, and not there", name)
		}
	}
	for name := range names {
		if !asked[name] {
			t.Errorf("%s is not shown", name)
		}
	}
}

// TestLines: a line a step of the run, and one of every rank, in both forms.
func TestLines(t *testing.T) {
	_, res, text := watched(t, "json")
	steps, ranks := 0, 0
	for line := range strings.Lines(text) {
		var l struct {
			Msg  string
			Step int
			Loss float64
			Rank *int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch l.Msg {
		case "step":
			if steps++; l.Loss != res.Loss[l.Step-1] {
				t.Errorf("step %d: loss %v, want %v", l.Step, l.Loss, res.Loss[l.Step-1])
			}
		case "rank":
			ranks++
		}
	}
	if steps != 3 || ranks != 24 {
		t.Errorf("%d lines of steps, %d of ranks", steps, ranks)
	}
	if _, _, text := watched(t, "text"); strings.Count(text, "msg=step") != 3 || !strings.Contains(text, `place="dp1 pp1 tp0"`) {
		t.Error(text)
	}
	if _, err := NewLogger(io.Discard, "xml", 1, false); err == nil {
		t.Error("xml is no format")
	}
}

// TestAddressTaken: an address that cannot be had is an error before the run.
func TestAddressTaken(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	where, err := New().Serve(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New().Serve(ctx, where); err == nil {
		t.Error("two servers at one address")
	}
}
