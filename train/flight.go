package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"triax/comm"
)

// Flight is what a rank leaves behind when a run fails: the file flight/rank-N.json of the run's folder.
type Flight struct {
	Rank      int             `json:"rank"`
	Place     string          `json:"place"`
	Host      string          `json:"host"`
	Error     string          `json:"error"`
	Calls     string          `json:"calls"` // the last ones, oldest first
	Sequences []comm.Sequence `json:"sequences"`
}

// flightFolder is where in a run's folder flight records are.
const flightFolder = "flight"

// flight writes this rank's record.
func (r *run) flight(cause error) error {
	if r.opts.Folder == "" {
		return nil
	}
	dir := filepath.Join(r.opts.Folder, flightFolder)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	rank := r.opts.World.Rank()
	name := flightFile(dir, rank)
	text, err := json.MarshalIndent(Flight{rank, place(r.plan.mesh, rank), host, cause.Error(), r.recorder.String(), r.recorder.Sequences()}, "", " ")
	if err != nil {
		return fmt.Errorf("flight record: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("flight record: %w", err)
	}
	if err := errors.Join(os.WriteFile(name+".part", text, 0o644), os.Rename(name+".part", name)); err != nil {
		return fmt.Errorf("flight record: %w", err)
	}
	return nil
}

func flightFile(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("rank-%04d.json", rank))
}

// clearFlight removes what an earlier attempt left: each rank its own record, rank 0 those of ranks that are no more. Nobody removes another's, which may
// be of this attempt already.
func (r *run) clearFlight() error {
	if r.opts.Folder == "" {
		return nil
	}
	dir := filepath.Join(r.opts.Folder, flightFolder)
	old := []string{flightFile(dir, r.opts.World.Rank())}
	if r.opts.World.Rank() == 0 {
		all, err := filepath.Glob(filepath.Join(dir, "rank-*.json"))
		if err != nil {
			return fmt.Errorf("flight records: %w", err)
		}
		for _, name := range all {
			if name >= flightFile(dir, r.opts.World.Size()) {
				old = append(old, name)
			}
		}
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("flight records: %w", err)
		}
	}
	return nil
}
