package report

import (
	"fmt"
	"math"

	"triax/plan"
)

// Point is a layout in the plane of memory and time.
type Point struct {
	Layout  string  `json:"layout"`
	Memory  float64 `json:"memory"`  // bytes of the worst rank
	Seconds float64 `json:"seconds"` // of a step
}

// PointOf is where a plan lies.
func PointOf(p *plan.Plan) Point {
	return Point{p.Layout, p.Memory[p.Worst].Peak, p.Step.Seconds}
}

// Front is what a search found, or has found so far.
type Front struct {
	Legal, Tried, Fit int
	Done              bool
	Front             []Point // no other layout is better in both; fastest first
	Others            []Point // some of the rest, for the cloud
}

// maxCloud bounds how many other layouts are drawn.
const maxCloud = 400

// FrontChart draws memory against time; here is the layout that the page is about.
func FrontChart(f *Front, here Point) Chart {
	c := Chart{ID: "front", Title: "Memory against time, all layouts", Data: Figure{Kind: points, Unit: "s", X: "memory of the worst rank, GiB"}}
	d := newDrawing(chartHeight)
	if len(f.Front) == 0 {
		d.text("middle", d.width/2, d.height/2, "no layout fits")
		c.About = fmt.Sprintf("Of %d legal layouts, none of the %d priced fits.", f.Legal, f.Tried)
		if !f.Done {
			c.About = "Not all layouts are priced yet; none has fit so far."
		}
		c.SVG = d.svg(c.Title + ". " + c.About)
		return c
	}
	lo, hi, fast, slow := math.Inf(1), 0.0, f.Front[0].Seconds, 0.0
	for _, p := range append([]Point{here}, f.Front...) {
		lo, hi = min(lo, p.Memory), max(hi, p.Memory)
		fast, slow = min(fast, p.Seconds), max(slow, p.Seconds)
	}
	slow = min(slow, 8*fast) // a hopeless layout must not flatten the others
	x := axis{lo: 0.9 * lo, hi: 1.03 * hi, from: marginLeft + 6, to: d.width - marginRight - 6}
	y := axis{lo: 0.95 * fast, hi: 1.08 * slow, from: d.height - marginFoot, to: marginTop}
	d.left(y, ticks(y.lo, y.hi, 5, 1), func(v float64) string { return short(plan.Seconds(v)) })
	var places []float64
	var labels []string
	for _, v := range ticks(x.lo, x.hi, 4, byteUnit(hi)) {
		places, labels = append(places, x.at(v)), append(labels, short(plan.Bytes(v)))
	}
	d.foot(places, labels)
	d.text("end", d.width-marginRight, d.height-3, "memory of the worst rank")
	cloud, front := Series{Name: "other layouts"}, Series{Name: "no other is better in both"}
	for _, p := range f.Others {
		cloud.X, cloud.Y = append(cloud.X, p.Memory/gib), append(cloud.Y, p.Seconds)
		if p.Seconds <= y.hi && p.Memory <= x.hi && p.Memory >= x.lo {
			d.dot("cloud", x.at(p.Memory), y.at(p.Seconds), 2, describe(p))
		}
	}
	var line [][2]float64
	for i, p := range f.Front {
		front.X, front.Y = append(front.X, p.Memory/gib), append(front.Y, p.Seconds)
		at := [2]float64{x.at(p.Memory), y.at(min(p.Seconds, y.hi))}
		if i > 0 { // between two layouts the faster one needs its memory all the way
			line = append(line, [2]float64{line[len(line)-1][0], at[1]})
		}
		line = append(line, at)
	}
	d.path("stroke s0", line)
	for _, p := range f.Front {
		if p.Seconds <= y.hi {
			d.dot("c0", x.at(p.Memory), y.at(p.Seconds), 4, describe(p))
		}
	}
	d.dot("here", x.at(here.Memory), y.at(min(here.Seconds, y.hi)), 5.5, "this layout: "+describe(here))
	c.Legend = []Legend{{"c0", front.Name}, {"cloud", cloud.Name}, {"here", "this layout"}}
	best := f.Front[0]
	c.About = fmt.Sprintf("%d legal layouts, %d priced, %d fit. Fastest: %s, %s a step in %s; this layout takes %.2f times as long.",
		f.Legal, f.Tried, f.Fit, best.Layout, plan.Seconds(best.Seconds), plan.Bytes(best.Memory), here.Seconds/best.Seconds)
	if !f.Done {
		c.About = fmt.Sprintf("Not all layouts are priced yet; %d fit so far. Fastest of them: %s, %s a step in %s.", f.Fit, best.Layout, plan.Seconds(best.Seconds), plan.Bytes(best.Memory))
	}
	c.Data.Series = []Series{front, cloud, {Name: "this layout", X: []float64{here.Memory / gib}, Y: []float64{here.Seconds}}}
	c.SVG = d.svg(c.Title + ". " + c.About)
	return c
}

func describe(p Point) string {
	return fmt.Sprintf("%s: %s, %s", p.Layout, plan.Seconds(p.Seconds), plan.Bytes(p.Memory))
}
