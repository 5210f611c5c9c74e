package train

import (
	"path/filepath"
	"sync"

	"triax/checkpoint"
	"triax/configs"
	"triax/mesh"
)

// keeper is what the ranks of a process know about saving: where, when, and what has been saved. Each rank's part is its saver.
type keeper struct {
	cfg   configs.CheckpointConfig
	dir   string // of the checkpoints, the same on all ranks; "" keeps none
	meta  checkpoint.Meta
	mesh  mesh.Mesh
	steps int
	stop  <-chan struct{}

	mu    sync.Mutex
	saves []Save
}

// Save is one checkpoint of a run.
type Save struct {
	Step    int     `json:"step"`
	Path    string  `json:"path"`
	Bytes   int64   `json:"bytes"`
	PauseMS float64 `json:"pause_ms"` // that training waited, on the rank that waited longest: for its copy, and for the save before
	WriteMS float64 `json:"write_ms"` // until everything was synced and named, from the end of the step
}

func newKeeper(p *plan, folder, corpus string, stop <-chan struct{}) (*keeper, error) {
	k := &keeper{cfg: p.cfg.Checkpoint, mesh: p.mesh, steps: p.cfg.Train.Steps, stop: stop}
	if folder == "" || !k.cfg.Last && k.cfg.Every == 0 && k.cfg.Minutes == 0 {
		return k, nil
	}
	text, err := p.cfg.TOML()
	if err != nil {
		return nil, err
	}
	k.dir = filepath.Join(folder, checkpointFolder)
	k.meta = checkpoint.Meta{Config: string(text), Mesh: p.mesh.String(), Corpus: corpus, Batch: p.cfg.Train.Batch}
	return k, nil
}

// checkpointFolder is where in a run's folder its checkpoints are.
const checkpointFolder = "checkpoints"

// book adds one rank's save to the list.
func (k *keeper) book(s Save) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.saves {
		if old := &k.saves[i]; old.Step == s.Step {
			old.Bytes += s.Bytes
			old.PauseMS, old.WriteMS = max(old.PauseMS, s.PauseMS), max(old.WriteMS, s.WriteMS)
			old.Path = max(old.Path, s.Path)
			return
		}
	}
	k.saves = append(k.saves, s)
}
