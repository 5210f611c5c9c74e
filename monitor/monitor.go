package monitor

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"triax/tensor"
	"triax/train"
)

// Monitor keeps the last step of a run for whoever asks. It may be used by all ranks at once.
type Monitor struct {
	mu      sync.Mutex
	last    train.Progress
	eval    *float64
	tokens  int64
	skipped int64
	ranks   map[int]*rank
	steps   prometheus.Histogram
	meters  meters
}

// rank adds up one rank's steps; communication comes added up.
type rank struct {
	last                 train.RankStep
	busy, idle, transfer float64 // seconds
}

// New makes a Monitor of a run that has not begun.
func New() *Monitor {
	return &Monitor{ranks: map[int]*rank{}, steps: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "triax_step_seconds", Help: "Time of a training step, on rank 0.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 20),
	})}
}

// Step is the OnStep hook.
func (m *Monitor) Step(p train.Progress) {
	m.steps.Observe(p.Took.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = p
	m.tokens += int64(p.Tokens)
	if p.Skipped {
		m.skipped++
	}
	if p.Eval != nil {
		m.eval = p.Eval
	}
	m.meters.observe()
}

// Rank is the OnRank hook.
func (m *Monitor) Rank(s train.RankStep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.ranks[s.Rank]
	if r == nil {
		r = &rank{}
		m.ranks[s.Rank] = r
	}
	r.last = s
	r.busy += s.Busy.Seconds()
	r.idle += s.Idle.Seconds()
	r.transfer += s.Transfer.Seconds()
}

var _ prometheus.Collector = (*Monitor)(nil)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("triax_"+name, help, labels, nil)
}

var (
	step      = describe("step", "Training steps done.")
	steps     = describe("steps", "Training steps of the whole run.")
	loss      = describe("loss", "Mean loss over the valid tokens of the last step.")
	norm      = describe("gradient_norm", "Norm of the whole model's gradient before clipping, at the last step.")
	rate      = describe("learning_rate", "Learning rate of the last step.")
	heldOut   = describe("held_out_loss", "Loss of the last evaluation.")
	tokens    = describe("tokens_total", "Tokens trained on by this process, all ranks.")
	perSecond = describe("tokens_per_second", "Tokens of all ranks over the time of the last step.")
	skipped   = describe("skipped_steps_total", "Steps whose gradient norm was not finite, where nothing was updated.")
	bubble    = describe("bubble_ratio", "Idle share of the last step, over the pipeline ranks of this process: 1 - busy / (ranks x step).")
	busy      = describe("rank_busy_seconds_total", "Time in an op and not waiting for a peer.", "rank", "place")
	idle      = describe("rank_idle_seconds_total", "Time waiting for a pipeline peer to make an input.", "rank", "place")
	transfer  = describe("rank_transfer_seconds_total", "Time moving inputs between pipeline ranks.", "rank", "place")
	calls     = describe("comm_calls_total", "Communication calls of training steps.", "rank", "place", "axis", "kind")
	moved     = describe("comm_bytes_total", "Bytes of those calls: what is reduced, the gathered result, the message.", "rank", "place", "axis", "kind")
	memory    = describe("memory_bytes", "A rank's memory after the last step.", "rank", "place", "kind")
	peak      = describe("memory_peak_bytes", "A rank's peak memory so far.", "rank", "place", "kind")
)

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(ch chan<- prometheus.Metric) {
	m.steps.Collect(ch)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meters.collect(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	count(tokens, float64(m.tokens))
	count(skipped, float64(m.skipped))
	gauge(step, float64(m.last.Step))
	if m.last.Step > 0 {
		gauge(steps, float64(m.last.Steps))
		gauge(loss, m.last.Loss)
		gauge(norm, m.last.Norm)
		gauge(rate, m.last.Rate)
		gauge(perSecond, float64(m.last.Tokens)/m.last.Took.Seconds())
	}
	if m.eval != nil {
		gauge(heldOut, *m.eval)
	}
	worked, whole := 0.0, 0.0
	for number, r := range m.ranks {
		who := []string{strconv.Itoa(number), r.last.Place}
		worked, whole = worked+r.last.Busy.Seconds(), whole+r.last.Took.Seconds()
		count(busy, r.busy, who...)
		count(idle, r.idle, who...)
		count(transfer, r.transfer, who...)
		for _, e := range r.last.Comm {
			at := append(append([]string{}, who...), e.Axis, string(e.Kind))
			count(calls, float64(e.Calls), at...)
			count(moved, float64(e.Bytes), at...)
		}
		for k := range tensor.NumKinds {
			at := append(append([]string{}, who...), tensor.Kind(k).String())
			gauge(memory, float64(r.last.Memory[k].Now), at...)
			gauge(peak, float64(r.last.Memory[k].Peak), at...)
		}
	}
	if whole > 0 {
		gauge(bubble, max(0, 1-worked/whole))
	}
}
