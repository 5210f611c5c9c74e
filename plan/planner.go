package plan

import (
	"fmt"
	"sync"

	"triax/comm"
	"triax/configs"
	"triax/nn"
	"triax/schedule"
	"triax/tensor"
	"triax/zero"
)

// Planner prices many layouts on one cluster, and keeps what they share: layers measured on paper, schedules and how each lies on a clock, buckets of parameters. It
// is for one goroutine; the Schedules that several share are for all.
type Planner struct {
	c          Cluster
	price      Kernels
	float      tensor.DType
	schedules  *Schedules
	simulators map[*schedule.Schedule]*schedule.Simulator
	layers     map[string][]Layer
	layouts    map[string]*layout
	sizes      map[string]int64 // parameters of whole models
}

// NewPlanner makes a planner; without Schedules it makes its own.
func NewPlanner(c Cluster, s *Schedules) *Planner {
	float := tensor.BF16
	if c.Precision == "fp32" {
		float = tensor.F32
	}
	return newPlanner(c, c, float, s)
}

func newPlanner(c Cluster, price Kernels, float tensor.DType, s *Schedules) *Planner {
	if s == nil {
		s = &Schedules{}
	}
	return &Planner{
		c: c, price: price, float: float, schedules: s, simulators: map[*schedule.Schedule]*schedule.Simulator{},
		layers: map[string][]Layer{}, layouts: map[string]*layout{}, sizes: map[string]int64{},
	}
}

// simulate puts a schedule on the clock. The timeline is good until the next call.
func (pl *Planner) simulate(s *schedule.Schedule, c schedule.Costs) (*schedule.Timeline, error) {
	m := pl.simulators[s]
	if m == nil {
		var err error
		if m, err = schedule.NewSimulator(s); err != nil {
			return nil, err
		}
		pl.simulators[s] = m
	}
	return m.Run(c)
}

// layersOf measures the layers of a resolved configuration, unless such ones were measured before.
func (pl *Planner) layersOf(cfg *configs.Config) ([]Layer, error) {
	m := cfg.Mesh
	key := fmt.Sprint(cfg.Model, m.TP, m.CP, m.EP, m.SequenceParallel, cfg.Train.Batch/(m.Replicas()*max(1, cfg.Pipeline.Microbatches)))
	if l, ok := pl.layers[key]; ok {
		return l, nil
	}
	l, err := layersOf(cfg, pl.float, pl.price)
	if err == nil {
		pl.layers[key] = l
	}
	return l, err
}

// parameters counts the whole model's.
func (pl *Planner) parameters(model nn.Config) (int64, error) {
	key := fmt.Sprint(model)
	if n, ok := pl.sizes[key]; ok {
		return n, nil
	}
	n, err := parameters(model)
	if err == nil {
		pl.sizes[key] = n
	}
	return n, err
}

// layout is the buckets of a pipeline rank, and what is often asked of them.
type layout struct {
	*zero.Layout
	weights, gradients, states, largest int64
	spans                               map[nn.Span]zero.Line
	tied                                zero.Line
}

// layoutOf lays out the parameters of the runs of layers that a rank holds. Ranks whose runs are alike have like buckets, whatever the layers' numbers.
func (pl *Planner) layoutOf(cfg *configs.Config, runs [][2]int) (*layout, error) {
	model := cfg.Model
	key := fmt.Sprint(model, cfg.Mesh.TP, cfg.Mesh.SequenceParallel, cfg.Zero.Stage, cfg.Zero.BucketElements, sizesOf(cfg.Mesh))
	for _, r := range runs {
		key += fmt.Sprint(r[0] == 0, r[1]-r[0], max(0, r[1]-1-model.Layers))
	}
	if l, ok := pl.layouts[key]; ok {
		return l, nil
	}
	kit, err := kitOf(cfg, NewSheet(pl.float, pl.price), &comm.Ledger{})
	if err != nil {
		return nil, err
	}
	built, err := nn.Build(model, kit, runs)
	if err != nil {
		return nil, err
	}
	var units []zero.Unit
	for i := range runs {
		for _, l := range built[i] {
			units = append(units, zero.Unit{Stage: i, Params: l.Params()})
		}
	}
	l := &layout{Layout: zero.NewLayout(cfg.Zero, units, sizesOf(cfg.Mesh))}
	l.weights, l.gradients, l.states = l.Elements()
	l.largest = l.Largest()
	l.spans, l.tied = l.SpanTraffic()
	pl.layouts[key] = l
	return l, nil
}

// Schedules keeps generated schedules by what they were generated from. It may be used by several goroutines.
type Schedules struct {
	mu   sync.Mutex
	made map[scheduleKey]func() (*schedule.Schedule, error)
}

type scheduleKey struct {
	name              string
	p, micros, chunks int
}

// of is the schedule of a configuration. One read from a file is verified each time; generated ones are right by their tests.
func (s *Schedules) of(c *configs.Config) (*schedule.Schedule, error) {
	if c.Pipeline.File != "" {
		return configs.Schedule(c)
	}
	key := scheduleKey{c.Pipeline.Schedule, c.Mesh.PP, c.Pipeline.Microbatches, c.Pipeline.Chunks}
	s.mu.Lock()
	make := s.made[key]
	if make == nil {
		make = sync.OnceValues(func() (*schedule.Schedule, error) { return schedule.New(key.name, key.p, key.micros, key.chunks) })
		if s.made == nil {
			s.made = map[scheduleKey]func() (*schedule.Schedule, error){}
		}
		s.made[key] = make
	}
	s.mu.Unlock()
	return make()
}
