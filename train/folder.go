package train

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"triax/comm"
	"triax/configs"
)

// folder is where a run writes: config.toml (resolved), metrics.jsonl (a line a step), and at the end result.json,
// ledger.json (communication by rank) and trace.json (a timeline for Perfetto). Whole files are written beside and renamed.
type folder struct {
	path    string
	metrics *os.File
	buf     *bufio.Writer
}

func openFolder(path string, cfg *configs.Config) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	text, err := cfg.TOML()
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f := &folder{path: path}
	if err := f.write("config.toml", text); err != nil {
		return nil, err
	}
	if f.metrics, err = os.Create(filepath.Join(path, "metrics.jsonl")); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f.buf = bufio.NewWriter(f.metrics)
	return f, nil
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
	if err := f.buf.Flush(); err != nil {
		f.metrics.Close()
		return err
	}
	return f.metrics.Close()
}
