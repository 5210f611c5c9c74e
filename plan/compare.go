package plan

import (
	"fmt"
	"strings"
)

// Column is one run of a comparison: its name, and its numbers by metric.
type Column struct {
	Name  string
	Plan  *Plan
	Notes []string
}

// metric is a row of a comparison. better is -1 where less is better, +1 where more is.
type metric struct {
	name   string
	value  func(p *Plan) float64
	text   func(x float64) string
	better int
}

func worst(f func(m Memory) float64) func(p *Plan) float64 {
	return func(p *Plan) float64 { return f(p.Memory[p.Worst]) }
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

var metrics = []metric{
	{"ranks", func(p *Plan) float64 { return float64(p.Ranks) }, func(x float64) string { return fmt.Sprintf("%.0f", x) }, 0},
	{"step", func(p *Plan) float64 { return p.Step.Seconds }, Seconds, -1},
	{"tokens/s", func(p *Plan) float64 { return p.TokensPerS }, func(x float64) string { return fmt.Sprintf("%.0f", x) }, +1},
	{"MFU", func(p *Plan) float64 { return p.MFU }, percent, +1},
	{"HFU", func(p *Plan) float64 { return p.HFU }, percent, 0},
	{"bubble", func(p *Plan) float64 { return p.Step.Bubble }, percent, -1},
	{"compute", func(p *Plan) float64 { return p.Step.Compute }, Seconds, -1},
	{"inside layers", func(p *Plan) float64 { return p.Step.Tensor }, Seconds, -1},
	{"data axes", func(p *Plan) float64 { return p.Step.Data }, Seconds, -1},
	{"update", func(p *Plan) float64 { return p.Step.Optimizer }, Seconds, -1},
	{"idle", func(p *Plan) float64 { return p.Step.Idle }, Seconds, -1},
	{"memory, worst rank", worst(func(m Memory) float64 { return m.Peak }), Bytes, -1},
	{"  weights", worst(func(m Memory) float64 { return m.Weights }), Bytes, -1},
	{"  gradients", worst(func(m Memory) float64 { return m.Gradients }), Bytes, -1},
	{"  states", worst(func(m Memory) float64 { return m.States }), Bytes, -1},
	{"  activations", worst(func(m Memory) float64 { return m.Activations }), Bytes, -1},
	{"  buffers", worst(func(m Memory) float64 { return m.Buffers }), Bytes, -1},
	{"sent a rank, inside layers", func(p *Plan) float64 { return p.wire("tp", "kv", "cp", "ep") }, Bytes, -1},
	{"sent a rank, data axes", func(p *Plan) float64 {
		return p.wire("data", "dp", "dp_replicate", "dp_expert", "data_expert")
	}, Bytes, -1},
	{"sent a rank, pipeline", func(p *Plan) float64 { return p.wire("pp", "tied") }, Bytes, -1},
}

// wire is what a rank puts on the wire along some axes in a step, mean over ranks.
func (p *Plan) wire(axes ...string) float64 {
	sum := 0.0
	for _, e := range p.Traffic {
		for _, a := range axes {
			if e.Axis == a {
				sum += e.Wire
			}
		}
	}
	return sum / float64(p.Ranks)
}

// Compare prints plans side by side: rows are metrics, columns are plans, the first is the base, and beside the others stands
// their ratio to it.
func Compare(columns []Column) string {
	rows := [][]string{{""}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.Name)
	}
	layouts := []string{"layout"}
	fits := []string{"fits"}
	var notes []string
	for _, c := range columns {
		layouts = append(layouts, c.Plan.Layout)
		f := "yes"
		if !c.Plan.Fits {
			f = "NO"
			notes = append(notes, fmt.Sprintf("%s does not fit: %s missing on pipeline rank %d; its times are what they would be.", c.Name, Bytes(-c.Plan.Room), c.Plan.Worst))
		}
		fits = append(fits, f)
		for _, n := range c.Notes {
			notes = append(notes, c.Name+": "+n)
		}
		if c.Plan.Tokens != columns[0].Plan.Tokens {
			notes = append(notes, fmt.Sprintf("%s trains on %d tokens a step, %s on %d: compare tokens/s, not steps.", c.Name, c.Plan.Tokens, columns[0].Name, columns[0].Plan.Tokens))
		}
	}
	rows = append(rows, layouts, fits)
	for _, m := range metrics {
		row := []string{m.name}
		base := m.value(columns[0].Plan)
		for i, c := range columns {
			x := m.value(c.Plan)
			cell := m.text(x)
			if i > 0 && m.better != 0 && base > 0 {
				cell += fmt.Sprintf(" (%.2fx)", x/base)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return table(rows) + footnotes(notes)
}

func footnotes(notes []string) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString("\n* " + n)
	}
	return b.String()
}

// table aligns cells in columns.
func table(rows [][]string) string {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		line := ""
		for i, c := range r {
			line += fmt.Sprintf("%-*s  ", widths[i], c)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
