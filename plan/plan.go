package plan

import (
	"fmt"

	"triax/comm"
	"triax/configs"
	"triax/mesh"
	"triax/schedule"
	"triax/tensor"
)

// paper is everything about a layout that does not depend on prices of links: layers, schedule, buckets.
type paper struct {
	cfg    *configs.Config // resolved
	mesh   mesh.Mesh
	sched  *schedule.Schedule
	layers []Layer
	ranks  []rank
	float  tensor.DType
}

// newPaper lays a validated configuration out.
func newPaper(cfg *configs.Config, float tensor.DType, price Kernels) (*paper, error) {
	cfg = configs.Resolved(cfg)
	p := &paper{cfg: cfg, float: float}
	var err error
	if p.mesh, err = cfg.Mesh.Grid(); err != nil {
		return nil, err
	}
	if p.sched, err = configs.Schedule(cfg); err != nil {
		return nil, err
	}
	runs, err := configs.Runs(cfg, p.sched.Stages)
	if err != nil {
		return nil, err
	}
	if p.layers, err = layersOf(cfg, float, price); err != nil {
		return nil, fmt.Errorf("on paper: %w", err)
	}
	kit, err := kitOf(cfg, NewSheet(float, price), &comm.Ledger{})
	if err != nil {
		return nil, err
	}
	p.ranks, err = ranksOf(cfg, p.sched, runs, p.layers, kit)
	return p, err
}

// floatOf is the type that a run on this machine computes in.
func floatOf(cfg *configs.Config) tensor.DType {
	if cfg.Train.Device == "float64" {
		return tensor.F64
	}
	return tensor.F32
}

// Traffic is the calls and bytes of one training step summed over all ranks, by axis and kind: what the ledger of a run on
// this machine counts. Bytes along the expert axis are those of tokens spread as a router of zeros spreads them.
func Traffic(cfg *configs.Config) ([]comm.Entry, error) {
	p, err := newPaper(cfg, floatOf(cfg), free{})
	if err != nil {
		return nil, err
	}
	return stepTraffic(p.cfg, p.sched, p.ranks, int64(p.float.Size())), nil
}

// free prices nothing.
type free struct{}

func (free) Gemm(int, int, int) float64                       { return 0 }
func (free) Attention(int, int, int, int, bool, bool) float64 { return 0 }
func (free) Pass(float64) float64                             { return 0 }
