package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"triax/configs"
	"triax/mesh"
	"triax/plan"
	"triax/train"
)

// Run is what a run's folder holds, finished or still growing. What could not be read is in Notes.
type Run struct {
	Folder   string
	Config   *configs.Config
	Steps    []StepLine
	Result   *train.Result // nil until the run has ended
	Timeline Group         // of the last step: one pipeline, those ranks whose other coordinates are 0
	Notes    []string
}

// StepLine is a line of metrics.jsonl.
type StepLine struct {
	Step   int      `json:"step"`
	Loss   real     `json:"loss"`
	Held   *real    `json:"held_out_loss"`
	StepMS float64  `json:"step_ms"`
	Rate   float64  `json:"lr"`
	Norm   real     `json:"grad_norm"`
	PerS   float64  `json:"tokens_per_s"`
	Skip   bool     `json:"skipped"`
	_      struct{} // keyed literals only
}

// real is a number that a run wrote, NaN and infinities as text.
type real float64

// UnmarshalJSON reads 1.5, "NaN", "+Inf".
func (r *real) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		text = []byte(s)
	}
	var x float64
	if _, err := fmt.Sscan(string(text), &x); err != nil {
		return fmt.Errorf("%.20q is not a number", text)
	}
	*r = real(x)
	return nil
}

// Bounds of what is read from a folder.
const (
	maxResult  = 256 << 20
	maxMetrics = 256 << 20
	maxSteps   = 1 << 20
)

// ReadRun reads a run's folder. It is an error only where there is no configuration to plan; whatever else is missing or broken is noted.
// Overrides are for its configuration, such as the cluster that it is planned on.
func ReadRun(folder string, overrides []string) (*Run, error) {
	cfg, err := configs.Load(filepath.Join(folder, "config.toml"), overrides)
	if err != nil {
		return nil, err
	}
	r := &Run{Folder: folder, Config: cfg}
	r.part("metrics.jsonl", "no step has been written yet", r.metrics)
	r.part("result.json", "the run has not ended: what it measured is not written yet", r.result)
	r.part("trace.json", "the run has not ended: it has no timeline yet", func(f io.Reader) error {
		grid, err := cfg.Mesh.Grid()
		if err != nil {
			return err
		}
		r.Timeline, err = readTrace(f, grid.Groups(mesh.PP)[0])
		return err
	})
	return r, nil
}

// part reads one file; its failure is a note.
func (r *Run) part(name, missing string, read func(io.Reader) error) {
	err := func() error {
		f, err := os.Open(filepath.Join(r.Folder, name))
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
			return errors.New("not a file")
		}
		return read(f)
	}()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Notes = append(r.Notes, missing)
	case err != nil:
		r.Notes = append(r.Notes, fmt.Sprintf("%s is not shown: %v", name, err))
	}
}

// metrics reads the lines there are. A last one that is being written is left for later.
func (r *Run) metrics(f io.Reader) error {
	b := bufio.NewReader(io.LimitReader(f, maxMetrics))
	for n := 1; ; n++ {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var s StepLine
		if err := json.Unmarshal(line, &s); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n > maxSteps {
			return fmt.Errorf("more than %d lines", maxSteps)
		}
		r.Steps = append(r.Steps, s)
	}
}

func (r *Run) result(f io.Reader) error {
	var res train.Result
	if err := json.NewDecoder(io.LimitReader(f, maxResult)).Decode(&res); err != nil {
		return err
	}
	if res.Ranks != r.Config.Mesh.World() || len(res.Memory) != res.Ranks {
		return fmt.Errorf("is of %d ranks and the memory of %d, config.toml of %d", res.Ranks, len(res.Memory), r.Config.Mesh.World())
	}
	r.Result = &res
	return nil
}

// stageMemory is, for each pipeline rank, the memory of the rank of that stage with the highest peak.
func (r *Run) stageMemory() []train.Memory {
	grid, err := r.Config.Mesh.Grid()
	if r.Result == nil || err != nil {
		return nil
	}
	out := make([]train.Memory, grid.Degree(mesh.PP))
	for rank, m := range r.Result.Memory {
		if stage := grid.Coord(rank)[mesh.PP]; m.Peak > out[stage].Peak {
			out[stage] = m
		}
	}
	return out
}

// Column is a finished run under the planner's metrics.
func (r *Run) Column(name string) (plan.Column, error) {
	res := r.Result
	if res == nil {
		return plan.Column{}, fmt.Errorf("%s: no result.json of a finished run", r.Folder)
	}
	c := plan.Column{Name: name, Layout: res.Mesh, Fits: "ran", Tokens: r.Config.Train.Batch * r.Config.Model.Sequence}
	worst := res.Memory[0]
	for _, m := range res.Memory {
		if m.Peak > worst.Peak {
			worst = m
		}
	}
	c.Values = map[string]float64{
		"ranks": float64(res.Ranks), "step": res.StepMS / 1e3, "tokens/s": res.TokensPerS, "bubble": res.Bubble.Measured,
		"memory, worst rank": float64(worst.Peak), "  weights": float64(worst.Parameters), "  gradients": float64(worst.Gradients),
		"  states": float64(worst.Optimizer), "  activations": float64(worst.Activations), "  buffers": float64(worst.Buffers),
	}
	for _, e := range res.Comm {
		c.Values[plan.SentMetric(e.Axis)] += e.Wire / float64(res.Ranks)
	}
	return c, nil
}
