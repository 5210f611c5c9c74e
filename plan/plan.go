package plan

import (
	"fmt"

	"triax/comm"
	"triax/configs"
	"triax/mesh"
	"triax/nn"
	"triax/schedule"
	"triax/tensor"
)

// paper is everything about a layout that does not depend on prices of links: layers, schedule, buckets.
type paper struct {
	cfg    *configs.Config // resolved
	mesh   mesh.Mesh
	sched  *schedule.Schedule
	stages []stage
	ops    [][schedule.NumKinds]int64 // of a step, by virtual stage
	ranks  []rank
	float  tensor.DType

	planner *Planner
}

// stage is a virtual stage on paper.
type stage struct {
	layers []Layer
	sums   [schedule.NumKinds]sum
}

// newPaper lays a validated configuration out.
func (pl *Planner) newPaper(cfg *configs.Config) (*paper, error) {
	cfg = configs.Resolved(cfg)
	p := &paper{cfg: cfg, float: pl.float, planner: pl}
	var err error
	if p.mesh, err = cfg.Mesh.Grid(); err != nil {
		return nil, err
	}
	if p.sched, err = pl.schedules.of(cfg); err != nil {
		return nil, err
	}
	runs, err := configs.Runs(cfg, p.sched.Stages)
	if err != nil {
		return nil, err
	}
	layers, err := pl.layersOf(cfg)
	if err != nil {
		return nil, fmt.Errorf("on paper: %w", err)
	}
	for _, r := range runs {
		list := layers[r[0]:r[1]]
		p.stages = append(p.stages, stage{list, sums(list)})
	}
	p.ops = counts(p.sched)
	p.ranks, err = pl.ranksOf(cfg, p.sched, runs)
	return p, err
}

// Plan is what a layout costs.
type Plan struct {
	Layout     string       `json:"layout"`
	Cluster    string       `json:"cluster"`
	Ranks      int          `json:"ranks"`
	Parameters int64        `json:"parameters"`     // of the whole model
	Tokens     int          `json:"tokens"`         // a step
	FLOPs      float64      `json:"flops"`          // of a step, all ranks: what the model needs, nothing made again
	Hardware   float64      `json:"hardware_flops"` // what the devices do, recomputation included
	Memory     []Memory     `json:"memory"`         // by pipeline rank
	Worst      int          `json:"worst"`          // the pipeline rank with the highest peak
	Fits       bool         `json:"fits"`
	Room       float64      `json:"room"`    // bytes left at the worst rank; negative: missing
	Traffic    []comm.Entry `json:"traffic"` // one step, all ranks
	Step       Step         `json:"step"`
	TokensPerS float64      `json:"tokens_per_s"`
	// MFU is FLOPs over what all devices could do in the step; HFU counts what they do. Causal attention counts half of its
	// scores, and a multiply-add two.
	MFU      float64 `json:"mfu"`
	HFU      float64 `json:"hfu"`
	Schedule []int   `json:"in_flight"` // microbatches of a chunk in flight, by pipeline rank

	// Warnings are what the numbers alone would not explain.
	Warnings []string `json:"warnings,omitempty"`

	Config *configs.Config    `json:"-"`
	Device Cluster            `json:"-"`
	Sched  *schedule.Schedule `json:"-"`
}

// New plans a validated configuration on the cluster that it names.
func New(cfg *configs.Config) (*Plan, error) {
	c, err := ClusterFor(cfg)
	if err != nil {
		return nil, err
	}
	return On(cfg, c)
}

// On plans a validated configuration on a cluster.
func On(cfg *configs.Config, c Cluster) (*Plan, error) { return NewPlanner(c, nil).Plan(cfg) }

// Plan plans a validated configuration. Its timeline is good until the planner's next plan.
func (pl *Planner) Plan(cfg *configs.Config) (*Plan, error) {
	p, err := pl.newPaper(cfg)
	if err != nil {
		return nil, err
	}
	c := pl.c
	out := &Plan{
		Layout: label(p.cfg), Cluster: c.Name, Ranks: p.mesh.Size(), Config: p.cfg, Device: c, Sched: p.sched,
		Traffic: p.traffic(int64(c.element()), int64(c.GradientBytes)), Schedule: schedule.InFlight(p.sched),
		Tokens: p.cfg.Train.Batch * p.cfg.Model.Sequence,
	}
	out.Parameters, err = pl.parameters(p.cfg.Model)
	if err != nil {
		return nil, err
	}
	out.FLOPs, out.Hardware = p.flops()
	for r := range p.ranks {
		m := p.memory(c, r)
		out.Memory = append(out.Memory, m)
		if m.Peak > out.Memory[out.Worst].Peak {
			out.Worst = r
		}
	}
	out.Room = c.Memory - out.Memory[out.Worst].Peak
	out.Fits = out.Room >= 0
	out.Warnings = p.warnings(c)
	if out.Step, err = newClock(p, c).step(); err != nil {
		return nil, err
	}
	out.TokensPerS = float64(out.Tokens) / out.Step.Seconds
	all := c.Peak * float64(out.Ranks) * out.Step.Seconds
	out.MFU, out.HFU = out.FLOPs/all, out.Hardware/all
	return out, nil
}

// parameters counts the whole model's.
func parameters(model nn.Config) (int64, error) {
	layers, err := nn.Whole(model)
	if err != nil {
		return 0, err
	}
	seen := map[*nn.Param]bool{}
	n := int64(0)
	for _, l := range layers {
		for _, p := range l.Params() {
			if !seen[p] {
				seen[p] = true
				n += int64(p.Elements())
			}
		}
	}
	return n, nil
}

// flops is what the model needs for a step, and what the ranks do for it.
func (p *paper) flops() (model, hardware float64) {
	side := float64(p.mesh.Size() / p.mesh.Degree(mesh.PP))
	for i, st := range p.stages {
		for kind, n := range p.ops[i] {
			hardware += st.sums[kind].flops * float64(n) * side
		}
		model += 3 * st.sums[schedule.F].flops * float64(p.ops[i][schedule.F]) * side // backward is twice the forward
	}
	return model, hardware
}

// label names a layout in a few words.
func label(cfg *configs.Config) string {
	m := cfg.Mesh
	s := fmt.Sprintf("tp%d pp%d dp%d", m.TP, m.PP, m.DP)
	for _, x := range []struct {
		n    int
		name string
	}{{m.Replicate, "replicate"}, {m.EP, "ep"}, {m.CP, "cp"}} {
		if x.n > 1 {
			s += fmt.Sprintf(" %s%d", x.name, x.n)
		}
	}
	s += fmt.Sprintf(" zero%d", cfg.Zero.Stage)
	if m.PP > 1 {
		s += " " + cfg.Pipeline.Schedule
		if c := cfg.Pipeline.Chunks; c > 1 {
			s += fmt.Sprintf(" v%d", c)
		}
	}
	s += fmt.Sprintf(" m%d", cfg.Pipeline.Microbatches)
	if m.SequenceParallel {
		s += " sp"
	}
	if m.PP > 1 && cfg.Pipeline.Balance == "cost" {
		s += " by cost"
	}
	if m.PP > 1 && len(m.Axes) > 0 && m.Axes[0] != mesh.PP.String() {
		s += " " + m.Axes[0] + " outermost"
	}
	if cfg.Model.Recompute != nn.RecomputeNone {
		s += " recompute " + cfg.Model.Recompute
	}
	return s
}

// floatOf is the type that a run on this machine computes in.
func floatOf(cfg *configs.Config) tensor.DType {
	if cfg.Train.Device == "float64" {
		return tensor.F64
	}
	if cfg.Train.Precision == configs.PrecisionBF16 {
		return tensor.BF16
	}
	return tensor.F32
}

// Traffic is the calls and bytes of one training step summed over all ranks, by axis and kind: what the ledger of a run on
// this machine counts. Bytes along the expert axis are those of tokens spread as a router of zeros spreads them.
func Traffic(cfg *configs.Config) ([]comm.Entry, error) {
	p, err := newPlanner(Cluster{}, free{}, floatOf(cfg), nil).newPaper(cfg)
	if err != nil {
		return nil, err
	}
	return p.traffic(int64(p.float.Size()), int64(p.float.Accum().Size())), nil
}

// free prices nothing.
type free struct{}

func (free) Gemm(int, int, int, bool) float64                 { return 0 }
func (free) Attention(int, int, int, int, bool, bool) float64 { return 0 }
func (free) Pass(float64) float64                             { return 0 }
func (free) Fusion() Fusion                                   { return Fusion{} }
