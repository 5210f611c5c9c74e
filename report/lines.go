package report

import (
	"fmt"
	"math"
	"strconv"

	"triax/plan"
)

// Kinds of figures.
const (
	stacks = "stacks"
	bars   = "bars"
	lines  = "lines"
	points = "points"
)

// Figure is a chart's numbers.
type Figure struct {
	Kind, Unit, X string
	LogX          bool
	Labels        []string // of bars
	Series        []Series
}

// Series is one line, or one part of every bar (X empty).
type Series struct {
	Name string
	X, Y []float64
}

// lineSpec is what lineChart draws.
type lineSpec struct {
	id, title, about string
	xText, yText     func(float64) string
	xLabel           string
	logX, zero       bool // zero begins the vertical axis at 0
	unit             float64
	series           []Series
	marks            bool // dots at the points
}

// lineChart draws series over a common horizontal axis.
func lineChart(p lineSpec) Chart {
	c := Chart{ID: p.id, Title: p.title, About: p.about, Data: Figure{Kind: lines, X: p.xLabel, LogX: p.logX, Series: p.series}}
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for i := range s.X {
			if math.IsNaN(s.Y[i]) || math.IsInf(s.Y[i], 0) {
				continue
			}
			x0, x1 = min(x0, s.X[i]), max(x1, s.X[i])
			y0, y1 = min(y0, s.Y[i]), max(y1, s.Y[i])
		}
	}
	d := newDrawing(chartHeight)
	if math.IsInf(x0, 1) {
		d.text("middle", d.width/2, d.height/2, "no finite number to draw")
		c.SVG = d.svg(p.title)
		return c
	}
	if p.zero {
		y0 = 0
	}
	if y1 == y0 {
		y1 = y0 + 1
	}
	x := axis{lo: x0, hi: x1, from: marginLeft + 6, to: d.width - marginRight - 6, log: p.logX}
	y := axis{lo: y0, hi: y1 + 0.04*(y1-y0), from: d.height - marginFoot, to: marginTop}
	d.left(y, ticks(y0, y.hi, 5, max(p.unit, 1e-300)), func(v float64) string { return short(p.yText(v)) })
	var places []float64
	var labels []string
	if p.logX {
		for _, v := range p.series[0].X {
			places, labels = append(places, x.at(v)), append(labels, p.xText(v))
		}
	} else {
		for _, v := range ticks(x0, x1, 5, 1) {
			places, labels = append(places, x.at(v)), append(labels, p.xText(v))
		}
	}
	d.foot(places, labels)
	d.text("end", d.width-marginRight, d.height-3, p.xLabel)
	for k, s := range p.series {
		c.Legend = append(c.Legend, Legend{class(k), s.Name})
		var run [][2]float64
		flush := func() {
			if len(run) > 1 {
				d.path("stroke s"+strconv.Itoa(k%8), run)
			}
			run = nil
		}
		for i := range s.X {
			if math.IsNaN(s.Y[i]) || math.IsInf(s.Y[i], 0) {
				flush()
				continue
			}
			at := [2]float64{x.at(s.X[i]), y.at(s.Y[i])}
			run = append(run, at)
			if p.marks {
				d.dot(class(k), at[0], at[1], 3.5, fmt.Sprintf("%s: %s at %s", s.Name, p.yText(s.Y[i]), p.xText(s.X[i])))
			}
		}
		flush()
	}
	c.SVG = d.svg(p.title + ". " + p.about)
	return c
}

// thin keeps about n points of a long series, always the last one.
func thin(s Series, n int) Series {
	if len(s.X) <= n {
		return s
	}
	out := Series{Name: s.Name}
	every := (len(s.X) + n - 1) / n
	for i := range s.X {
		if i%every == 0 || i == len(s.X)-1 {
			out.X, out.Y = append(out.X, s.X[i]), append(out.Y, s.Y[i])
		}
	}
	return out
}

// curves are a run's loss and times over its steps.
func curves(r *Run, predicted float64) []Chart {
	loss, held, took := Series{Name: "training"}, Series{Name: "held out"}, Series{Name: "measured"}
	for _, s := range r.Steps {
		x := float64(s.Step)
		loss.X, loss.Y = append(loss.X, x), append(loss.Y, float64(s.Loss))
		took.X, took.Y = append(took.X, x), append(took.Y, s.StepMS/1e3)
		if s.Held != nil {
			held.X, held.Y = append(held.X, x), append(held.Y, float64(*s.Held))
		}
	}
	if len(loss.X) == 0 {
		return nil
	}
	step := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	series := []Series{thin(loss, 600)}
	if len(held.X) > 0 {
		series = append(series, held)
	}
	last := r.Steps[len(r.Steps)-1]
	times := []Series{thin(took, 600)}
	if predicted > 0 {
		times = append(times, Series{Name: "predicted", X: []float64{took.X[0], took.X[len(took.X)-1]}, Y: []float64{predicted, predicted}})
	}
	return []Chart{
		lineChart(lineSpec{id: "loss", title: "Loss", about: fmt.Sprintf("%.4f after step %d.", float64(last.Loss), last.Step), xLabel: "step",
			xText: step, yText: func(v float64) string { return fmt.Sprintf("%.3g", v) }, series: series}),
		lineChart(lineSpec{id: "times", title: "Time of each step", about: "The first steps fill caches and arenas.", xLabel: "step",
			xText: step, yText: plan.Seconds, zero: true, series: times}),
	}
}
