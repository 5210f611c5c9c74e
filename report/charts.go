package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"triax/comm"
	"triax/plan"
)

// Chart is one picture of the page.
type Chart struct {
	ID, Title string
	About     string // what it shows, in words
	SVG       template.HTML
	Legend    []Legend
	Data      Figure // the same as numbers, for pictures by other means
}

// Legend names a colour.
type Legend struct{ Class, Name string }

var memoryParts = []struct {
	name string
	of   func(plan.Memory) float64
}{
	{"weights", func(m plan.Memory) float64 { return m.Weights }},
	{"gradients", func(m plan.Memory) float64 { return m.Gradients }},
	{"states", func(m plan.Memory) float64 { return m.States }},
	{"activations", func(m plan.Memory) float64 { return m.Activations }},
	{"buffers", func(m plan.Memory) float64 { return m.Buffers }},
	{"slack", func(m plan.Memory) float64 { return m.Slack }},
}

// memoryChart stacks each pipeline rank's memory by part; beside it stands what a run measured.
func memoryChart(i Item) Chart {
	p := i.Plan
	unit, name := gib, "GiB"
	if p.Memory[p.Worst].Peak < gib {
		unit, name = 1<<20, "MiB"
	}
	f := Figure{Kind: stacks, Unit: name, X: "pipeline rank"}
	c := Chart{ID: "memory", Title: "Memory by pipeline rank"}
	for k, part := range memoryParts {
		c.Legend = append(c.Legend, Legend{class(k), part.name})
		s := Series{Name: part.name}
		for _, m := range p.Memory {
			s.Y = append(s.Y, part.of(m)/float64(unit))
		}
		f.Series = append(f.Series, s)
	}
	measured := i.measuredMemory()
	for r := range p.Memory {
		f.Labels = append(f.Labels, strconv.Itoa(r))
	}
	most := 0.0
	for _, m := range append(slices.Clone(p.Memory), measured...) {
		most = max(most, m.Peak)
	}
	limit := p.Device.Memory
	if limit <= 3*most {
		most = max(most, limit)
	}
	d := newDrawing(chartHeight)
	y := axis{lo: 0, hi: most * 1.05, from: d.height - marginFoot, to: marginTop}
	d.left(y, ticks(0, y.hi, 5, byteUnit(most)), func(v float64) string { return short(plan.Bytes(v)) })
	slot := (d.width - marginLeft - marginRight) / float64(len(p.Memory))
	places := make([]float64, len(p.Memory))
	for r, m := range p.Memory {
		x, w := marginLeft+slot*(float64(r)+0.1), slot*0.8
		if measured != nil {
			w /= 2
			d.stack(measured[r], x+w, w, y, fmt.Sprintf("pipeline rank %d, measured", r), " measured")
		}
		d.stack(m, x, w, y, fmt.Sprintf("pipeline rank %d", r), "")
		places[r] = marginLeft + slot*(float64(r)+0.5)
	}
	if limit <= y.hi {
		d.line("limit", marginLeft, y.at(limit), d.width-marginRight, y.at(limit))
		d.text("end", d.width-marginRight, y.at(limit)-3, "device "+plan.Bytes(limit))
	}
	d.foot(places, f.Labels)
	worst := p.Memory[p.Worst]
	c.About = fmt.Sprintf("Highest at pipeline rank %d: %s of the device's %s.", p.Worst, plan.Bytes(worst.Peak), plan.Bytes(limit))
	if measured != nil {
		c.About += " Left bars are predicted, right ones measured; a part's peak is its own, so measured bars may add up to more than the peak of their sum."
	}
	c.SVG, c.Data = d.svg(c.Title+". "+c.About), f
	return c
}

const gib = 1 << 30 // bytes

// stack draws one bar.
func (d *drawing) stack(m plan.Memory, x, w float64, y axis, who, more string) {
	low := 0.0
	for k, part := range memoryParts {
		b := part.of(m)
		if b <= 0 {
			continue
		}
		top := y.at(low + b)
		d.rect(class(k)+more, x, top, w, y.at(low)-top, fmt.Sprintf("%s: %s %s, all %s", who, part.name, plan.Bytes(b), plan.Bytes(m.Peak)))
		low += b
	}
}

// class is one of the palette's colours.
func class(k int) string { return "c" + strconv.Itoa(k%8) }

// stepParts are the parts of a step, as they stand in the plan.
func stepParts(s plan.Step) []part {
	return []part{
		{"compute", s.Compute}, {"inside layers", s.Tensor}, {"data axes", s.Data}, {"update", s.Optimizer}, {"idle", s.Idle},
	}
}

type part struct {
	name  string
	value float64
}

// stepChart is the waterfall of a step: each part begins where the one before ends.
func stepChart(i Item) Chart {
	s := i.Plan.Step
	parts := stepParts(s)
	c := Chart{ID: "step", Title: "Where the step's time goes"}
	f := Figure{Kind: bars, Unit: "ms", X: "", Series: []Series{{Name: "predicted"}}}
	rows := len(parts) + 1
	total := s.Seconds
	if m := i.measuredStep(); m > 0 {
		rows++
		total = max(total, m)
	}
	const row = 26
	d := newDrawing(marginTop + row*float64(rows) + marginFoot)
	x := axis{lo: 0, hi: total * 1.02, from: marginLeft + 32, to: d.width - marginRight}
	d.ruler(x, plan.Seconds)
	at := 0.0
	line := func(n int, name, class, title string, from, to float64) {
		y := marginTop + row*float64(n)
		d.text("end", marginLeft+27, y+16, name)
		d.rect(class, x.at(from), y+4, x.at(to)-x.at(from), row-8, title)
	}
	for n, p := range parts {
		line(n, p.name, class(n), fmt.Sprintf("%s: %s, %.1f%% of the step", p.name, plan.Seconds(p.value), 100*p.value/s.Seconds), at, at+max(p.value, 0))
		at += max(p.value, 0)
		f.Labels, f.Series[0].Y = append(f.Labels, p.name), append(f.Series[0].Y, p.value*1e3)
	}
	line(len(parts), "step", "whole", "step: "+plan.Seconds(s.Seconds), 0, s.Seconds)
	if m := i.measuredStep(); m > 0 {
		line(len(parts)+1, "measured", "whole measured", "measured, median step: "+plan.Seconds(m), 0, m)
	}
	c.About = fmt.Sprintf("%s a step, of the rank that computes longest. Idle by cause, mean over ranks: warm-up %s, waiting for a peer %s, transfer %s, drain %s.",
		plan.Seconds(s.Seconds), plan.Seconds(s.WarmUp), plan.Seconds(s.Peer), plan.Seconds(s.Transfer), plan.Seconds(s.Drain))
	c.SVG, c.Data = d.svg(c.Title+". "+c.About), f
	return c
}

// ruler draws a horizontal axis with its grid.
func (d *drawing) ruler(x axis, text func(float64) string) {
	for n, v := range ticks(x.lo, x.hi, 4, 1) {
		d.line("grid", x.at(v), marginTop, x.at(v), d.height-marginFoot)
		anchor := "middle"
		if n == 0 {
			d.text(anchor, x.at(v), d.height-marginFoot+14, "0")
			continue
		}
		if x.at(v) > d.width-30 {
			anchor = "end"
		}
		d.text(anchor, x.at(v), d.height-marginFoot+14, short(text(v)))
	}
}

// short drops zeros behind a point: "1.500 s" is "1.5 s".
func short(s string) string {
	number, unit, _ := strings.Cut(s, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}

// wires is what a rank sends, by axis and kind of call, mean over ranks.
func wires(list []comm.Entry, ranks int) (out []part) {
	for _, e := range list {
		if e.Wire > 0 && ranks > 0 {
			out = append(out, part{e.Axis + " " + strings.ReplaceAll(string(e.Kind), "_", "-"), e.Wire / float64(ranks)})
		}
	}
	return out
}

// trafficChart is what a rank sends in a step, a line for each axis and kind of call.
func trafficChart(i Item) Chart {
	c := Chart{ID: "traffic", Title: "Sent by a rank in a step"}
	parts := wires(i.Plan.Traffic, i.Plan.Ranks)
	measured := map[string]float64{}
	if r := i.result(); r != nil {
		for _, p := range wires(r.Comm, r.Ranks) {
			measured[p.name] += p.value
		}
	}
	f := Figure{Kind: bars, Unit: "MiB", Series: []Series{{Name: "predicted"}}}
	most := 0.0
	for _, p := range parts {
		most = max(most, p.value, measured[p.name])
	}
	const row = 26
	d := newDrawing(marginTop + row*float64(max(1, len(parts))) + 6)
	x := axis{lo: 0, hi: max(most, 1), from: marginLeft + 62, to: d.width - marginRight - 58}
	for n, p := range parts {
		y := marginTop + row*float64(n)
		d.text("end", x.from-5, y+16, p.name)
		h := float64(row - 8)
		note := "planned"
		if m, ok := measured[p.name]; ok {
			h /= 2
			d.rect("measured c"+strconv.Itoa(axisClass(p.name)), x.from, y+4+h, x.at(m)-x.from, h, fmt.Sprintf("%s: %s measured", p.name, plan.Bytes(m)))
			if math.Abs(m-p.value) < 0.5 {
				note = "planned, and the same measured"
			}
		}
		d.rect("c"+strconv.Itoa(axisClass(p.name)), x.from, y+4, max(x.at(p.value)-x.from, 1), h, fmt.Sprintf("%s: %s %s", p.name, plan.Bytes(p.value), note))
		d.text("start", x.at(max(p.value, measured[p.name]))+4, y+16, plan.Bytes(p.value))
		f.Labels, f.Series[0].Y = append(f.Labels, p.name), append(f.Series[0].Y, p.value/(1<<20))
	}
	if len(parts) == 0 {
		d.text("start", marginLeft, marginTop+16, "one rank sends nothing")
	}
	c.About = "Bytes on the wire under algorithms that are optimal in bandwidth, mean over ranks."
	if len(measured) > 0 {
		c.About += " Upper bars are predicted, lower ones measured."
	}
	c.SVG, c.Data = d.svg(c.Title+". "+c.About), f
	return c
}

// axisClass gives what runs on one axis one colour.
func axisClass(name string) int {
	axis, _, _ := strings.Cut(name, " ")
	for k, list := range []string{"tp kv", "pp tied", "dp dp_expert data data_expert", "dp_replicate", "cp", "ep"} {
		if slices.Contains(strings.Fields(list), axis) {
			return k
		}
	}
	return 6
}
