package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"triax/checkpoint"
	"triax/comm"
	"triax/configs"
)

// folder is where a run writes: config.toml (resolved), metrics.jsonl (a line a step), and at the end result.json,
// ledger.json (communication by rank) and trace.json (a timeline for Perfetto). Whole files are written beside and renamed.
type folder struct {
	path    string
	lock    *os.File // holds off other processes
	metrics *os.File
	buf     *bufio.Writer
}

// openFolder makes a run's folder, or takes up one whose run goes on from a checkpoint: lines and checkpoints of later steps are dropped or set aside, since
// those steps are made again. One process at a time has a folder.
func openFolder(path string, cfg *configs.Config, from *checkpoint.Checkpoint) (*folder, error) {
	if err := unused(path, from); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, lock: lock}
	if err := f.open(cfg, from); err != nil {
		return nil, errors.Join(fmt.Errorf("run folder: %w", err), lock.Close())
	}
	return f, nil
}

func (f *folder) open(cfg *configs.Config, from *checkpoint.Checkpoint) error {
	done := 0
	if from != nil {
		done = from.Step
	}
	if err := f.openCheckpoints(done); err != nil {
		return err
	}
	text, err := cfg.TOML()
	if err != nil {
		return err
	}
	if err := f.write("config.toml", text); err != nil {
		return err
	}
	metrics := filepath.Join(f.path, "metrics.jsonl")
	kept, err := metricsUntil(metrics, done)
	if err != nil {
		return err
	}
	if err := f.write("metrics.jsonl", kept); err != nil {
		return err
	}
	if f.metrics, err = os.OpenFile(metrics, os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	f.buf = bufio.NewWriter(f.metrics)
	return nil
}

// openCheckpoints removes what was left half-written, and sets aside what the run is going to make again.
func (f *folder) openCheckpoints(done int) error {
	dir := filepath.Join(f.path, checkpointFolder)
	if err := checkpoint.Sweep(dir); err != nil {
		return err
	}
	return checkpoint.SetAside(dir, done)
}

// unused refuses a folder with checkpoints of a run other than the one that is resumed.
func unused(path string, from *checkpoint.Checkpoint) error {
	dir := filepath.Join(path, checkpointFolder)
	list, err := checkpoint.List(dir)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	if len(list) > 0 && (from == nil || !sameFolder(filepath.Dir(from.Dir), dir)) {
		return configs.Problems{{Field: "out", Value: path, Rule: "has checkpoints of a run", Hint: "add --resume latest to go on with it, or name another folder"}}
	}
	return nil
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// metricsUntil is the lines of steps up to done. A last line that was cut off is dropped.
func metricsUntil(path string, done int) ([]byte, error) {
	text, err := os.ReadFile(path)
	if done == 0 || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []byte
	for line := range bytes.Lines(text) {
		var at struct{ Step int }
		if json.Unmarshal(line, &at) == nil && at.Step <= done && line[len(line)-1] == '\n' {
			out = append(out, line...)
		}
	}
	return out, nil
}

// metric appends a step's line.
func (f *folder) metric(p Progress) error {
	line := map[string]any{
		"step": p.Step, "loss": number(p.Loss), "grad_norm": number(p.Norm), "lr": p.Rate,
		"tokens": p.Tokens, "step_ms": ms(p.Took), "tokens_per_s": float64(p.Tokens) / p.Took.Seconds(),
	}
	if p.Skipped {
		line["skipped"] = true
	}
	if p.Eval != nil {
		line["held_out_loss"] = number(*p.Eval)
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if _, err := f.buf.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return f.buf.Flush()
}

// number keeps JSON valid: it has no NaN and no infinity.
func number(x float64) any {
	if x-x != 0 {
		return fmt.Sprint(x)
	}
	return x
}

func (f *folder) finish(res *Result, recs *records) error {
	text, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	if err := f.write("result.json", text); err != nil {
		return err
	}
	byRank := make([][]comm.Entry, len(recs.slots))
	for i, s := range recs.slots {
		byRank[i] = s.comm
	}
	if text, err = json.MarshalIndent(byRank, "", " "); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := f.write("ledger.json", text); err != nil {
		return err
	}
	if text, err = json.Marshal(recs.trace()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return f.write("trace.json", text)
}

// write puts a whole file in place in one move.
func (f *folder) write(name string, text []byte) error {
	part := filepath.Join(f.path, name+".part")
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	if err := os.Rename(part, filepath.Join(f.path, name)); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}

func (f *folder) close() error {
	return errors.Join(f.buf.Flush(), f.metrics.Close(), f.lock.Close())
}
