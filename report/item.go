package report

import (
	"fmt"

	"triax/plan"
	"triax/train"
)

// Item is one column of the page: a plan, and the run that it predicts where there is one.
type Item struct {
	Name           string
	Plan           *plan.Plan
	Run            *Run
	Fixed, Growing []Scale
	Front          *Front
	Notes          []string
}

func (i Item) result() *train.Result {
	if i.Run == nil {
		return nil
	}
	return i.Run.Result
}

// measuredMemory is that of the run, by pipeline rank; nil without one.
func (i Item) measuredMemory() (out []plan.Memory) {
	if i.result() == nil {
		return nil
	}
	for _, m := range i.Run.stageMemory() {
		out = append(out, plan.Memory{
			Weights: float64(m.Parameters), Gradients: float64(m.Gradients), States: float64(m.Optimizer),
			Activations: float64(m.Activations + m.Workspace + m.Inputs), Buffers: float64(m.Buffers), Peak: float64(m.Peak),
		})
	}
	if len(out) != len(i.Plan.Memory) {
		return nil
	}
	return out
}

// measuredStep is the run's median step in seconds, 0 without one.
func (i Item) measuredStep() float64 {
	if r := i.result(); r != nil && r.StepMS > 0 {
		return r.StepMS / 1e3
	}
	return 0
}

// Columns are the item in a comparison: measured first, where it ran, then planned.
func (i Item) Columns() (out []plan.Column) {
	name := i.Name
	if i.Run != nil {
		if c, err := i.Run.Column(name); err == nil {
			out = append(out, c)
		}
		name += " planned"
	}
	return append(out, plan.ColumnOf(name, i.Plan))
}

// Timelines are the item's groups: predicted above measured.
func (i Item) Timelines() []Group {
	out := []Group{planned(i.Plan)}
	if i.Run != nil && len(i.Run.Timeline.Lanes) > 0 {
		out = append(out, i.Run.Timeline)
	}
	return out
}

// Charts are the pictures beside the timeline.
func (i Item) Charts() []Chart {
	out := []Chart{memoryChart(i), stepChart(i), trafficChart(i)}
	if c, ok := ScalingChart(i.Fixed, i.Growing); ok {
		out = append(out, c)
	}
	if i.Front != nil {
		out = append(out, FrontChart(i.Front, PointOf(i.Plan)))
	}
	if i.Run != nil {
		out = append(out, curves(i.Run, i.Plan.Step.Seconds)...)
	}
	return out
}

// number is a headline of an item. Key and Value are those of `triax plan --json`.
type number struct {
	Key, Label, Text string
	Value            float64
}

// headlines are the numbers that stand above the charts.
func (i Item) headlines() []number {
	p := i.Plan
	worst := p.Memory[p.Worst]
	room := "to spare"
	if !p.Fits {
		room = "missing"
	}
	out := []number{
		{"step.seconds", "step", plan.Seconds(p.Step.Seconds), p.Step.Seconds},
		{"tokens_per_s", "tokens/s", count(p.TokensPerS), p.TokensPerS},
		{"mfu", "MFU", fmt.Sprintf("%.1f%%", 100*p.MFU), p.MFU},
		{"step.bubble", "bubble of the whole step", fmt.Sprintf("%.1f%%", 100*p.Step.Bubble), p.Step.Bubble},
		{"memory.peak", "memory of the worst rank", plan.Bytes(worst.Peak), worst.Peak},
		{"room", room, plan.Bytes(max(p.Room, -p.Room)), p.Room},
		{"ranks", "ranks of " + p.Cluster, fmt.Sprint(p.Ranks), float64(p.Ranks)},
	}
	if r := i.result(); r != nil {
		out = append(out,
			number{"measured.step_ms", "measured step", plan.Seconds(r.StepMS / 1e3), r.StepMS},
			number{"measured.bubble", "measured bubble", fmt.Sprintf("%.1f%%", 100*r.Bubble.Measured), r.Bubble.Measured})
	}
	return out
}

// remarks are the notes of the item, its plan and its run.
func (i Item) remarks() []string {
	out := append([]string{}, i.Notes...)
	out = append(out, plan.ColumnOf(i.Name, i.Plan).Notes...)
	if t := planned(i.Plan).end(); i.Plan.Step.Seconds > 1.01*t && t > 0 {
		out = append(out, fmt.Sprintf("%d ranks share %d cores: the predicted timeline is drawn as if each had its own, %s, and the step takes %s.",
			i.Plan.Ranks, i.Plan.Device.Cores, plan.Seconds(t), plan.Seconds(i.Plan.Step.Seconds)))
	}
	if i.Run != nil {
		out = append(out, i.Run.Notes...)
	}
	return out
}
