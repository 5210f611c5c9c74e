package plan

import (
	"fmt"
	"strings"
)

// Column is one run of a comparison, planned or measured: its numbers by metric, and what to know about it.
type Column struct {
	Name, Layout, Fits string
	Tokens             int // a step
	Values             map[string]float64
	Notes              []string
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
	{sentInside, func(p *Plan) float64 { return p.wire(sentInside) }, Bytes, -1},
	{sentData, func(p *Plan) float64 { return p.wire(sentData) }, Bytes, -1},
	{sentPipeline, func(p *Plan) float64 { return p.wire(sentPipeline) }, Bytes, -1},
}

const (
	sentInside   = "sent a rank, inside layers"
	sentData     = "sent a rank, data axes"
	sentPipeline = "sent a rank, pipeline"
)

// SentMetric is the metric that counts what goes over an axis of the ledger.
func SentMetric(axis string) string {
	switch axis {
	case "tp", "kv", "cp", "ep":
		return sentInside
	case "pp", "tied":
		return sentPipeline
	}
	return sentData
}

// wire is what a rank puts on the wire in a step under one of these metrics, mean over ranks.
func (p *Plan) wire(metric string) float64 {
	sum := 0.0
	for _, e := range p.Traffic {
		if SentMetric(e.Axis) == metric {
			sum += e.Wire
		}
	}
	return sum / float64(p.Ranks)
}

// Values are a plan's numbers by metric.
func (p *Plan) Values() map[string]float64 {
	out := map[string]float64{}
	for _, m := range metrics {
		out[m.name] = m.value(p)
	}
	return out
}

// ColumnOf is a plan as a column.
func ColumnOf(name string, p *Plan) Column {
	c := Column{Name: name, Layout: p.Layout, Fits: "yes", Tokens: p.Tokens, Values: p.Values()}
	if !p.Fits {
		c.Fits = "NO"
		c.Notes = append(c.Notes, fmt.Sprintf("does not fit: %s missing on pipeline rank %d; its times are what they would be.", Bytes(-p.Room), p.Worst))
	}
	return c
}

// Row is one metric of several columns.
type Row struct {
	Name  string
	Cells []Cell
}

// Cell is a column's number under a metric: as text, and as a ratio to the first column's where less or more is better. Text is empty where the
// column does not have it.
type Cell struct {
	Text         string
	Value, Ratio float64
}

// Rows are the metrics that any of the columns has, in the order in which they are shown.
func Rows(columns []Column) (out []Row) {
	for _, m := range metrics {
		row := Row{Name: m.name}
		base := columns[0].Values[m.name]
		any := false
		for i, c := range columns {
			x, ok := c.Values[m.name]
			if !ok {
				row.Cells = append(row.Cells, Cell{})
				continue
			}
			any = true
			cell := Cell{Text: m.text(x), Value: x}
			if i > 0 && m.better != 0 && base > 0 {
				cell.Ratio = x / base
			}
			row.Cells = append(row.Cells, cell)
		}
		if any {
			out = append(out, row)
		}
	}
	return out
}

// Notes are what to know before reading the columns side by side.
func Notes(columns []Column) (notes []string) {
	for _, c := range columns {
		for _, n := range c.Notes {
			notes = append(notes, c.Name+" "+n)
		}
		if c.Tokens != columns[0].Tokens {
			notes = append(notes, fmt.Sprintf("%s trains on %d tokens a step, %s on %d: compare tokens/s, not steps.", c.Name, c.Tokens, columns[0].Name, columns[0].Tokens))
		}
	}
	return notes
}

// Compare prints columns side by side: rows are metrics, the first column is the base, and beside the numbers of the others stands their
// ratio to it. A metric that a column does not have is left blank.
func Compare(columns []Column) string {
	rows := [][]string{{""}, {"layout"}, {"fits"}}
	for _, c := range columns {
		rows[0], rows[1], rows[2] = append(rows[0], c.Name), append(rows[1], c.Layout), append(rows[2], c.Fits)
	}
	for _, r := range Rows(columns) {
		row := []string{r.Name}
		for _, c := range r.Cells {
			if c.Ratio > 0 {
				c.Text += fmt.Sprintf(" (%.2fx)", c.Ratio)
			}
			row = append(row, c.Text)
		}
		rows = append(rows, row)
	}
	return table(rows) + footnotes(Notes(columns))
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
