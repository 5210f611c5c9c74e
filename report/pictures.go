package report

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"triax/schedule"
)

// palette is Okabe and Ito's, in the order of the page's classes.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x8a, 0x8f, 0x98, 0xff}, {0xb8, 0xa9, 0x00, 0xff},
}

// Pictures writes every chart and timeline of the items into a folder, as PNG and SVG, and returns the files.
func Pictures(folder string, items []Item) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("pictures: %w", err)
	}
	for at, i := range items {
		plots := map[string]*plot.Plot{}
		for _, g := range i.Timelines() {
			plots["timeline-"+g.Name] = timelinePlot(i.Name, g)
		}
		for _, c := range i.Charts() {
			p, err := figurePlot(c)
			if err != nil {
				return files, fmt.Errorf("pictures: %s of %s: %w", c.ID, i.Name, err)
			}
			plots[c.ID] = p
		}
		for id, p := range plots {
			for _, ext := range []string{".png", ".svg"} {
				file := filepath.Join(folder, fmt.Sprintf("%d-%s%s", at+1, id, ext))
				if err := p.Save(8*vg.Inch, 4.5*vg.Inch, file); err != nil {
					return files, fmt.Errorf("pictures: %w", err)
				}
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// figurePlot draws a chart's numbers.
func figurePlot(c Chart) (*plot.Plot, error) {
	p := plot.New()
	f := c.Data
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, f.X, f.Unit
	p.Legend.Top = true
	if f.Kind == stacks || f.Kind == bars {
		return p, addBars(p, f)
	}
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid())
	for k, s := range f.Series {
		xy := finite(s)
		if len(xy) == 0 {
			continue
		}
		if f.Kind == points && k > 0 {
			dots, err := plotter.NewScatter(xy)
			if err != nil {
				return nil, err
			}
			dots.Color, dots.Shape, dots.Radius = palette[(6-k+8)%8], draw.CircleGlyph{}, vg.Points(float64(1+2*(k/2)))
			p.Add(dots)
			p.Legend.Add(s.Name, dots)
			continue
		}
		line, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = palette[k%8], vg.Points(1.8)
		dots.Color, dots.Shape, dots.Radius = palette[k%8], draw.CircleGlyph{}, vg.Points(2)
		p.Add(line)
		if len(xy) < 40 {
			p.Add(dots)
		}
		p.Legend.Add(s.Name, line)
	}
	return p, nil
}

func finite(s Series) (out plotter.XYs) {
	for i := range s.X {
		if y := s.Y[i]; !math.IsNaN(y) && !math.IsInf(y, 0) {
			out = append(out, plotter.XY{X: s.X[i], Y: y})
		}
	}
	return out
}

func addBars(p *plot.Plot, f Figure) error {
	p.X.Min, p.X.Max = -0.6, float64(len(f.Labels))-0.4
	p.NominalX(thinLabels(f.Labels)...)
	if len(f.Labels) == 0 {
		return nil
	}
	width := vg.Length(480 / float64(len(f.Labels)) * 0.8)
	var below *plotter.BarChart
	for k, s := range f.Series {
		b, err := plotter.NewBarChart(plotter.Values(s.Y), min(width, vg.Points(60)))
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = palette[k%8], 0
		if below != nil {
			b.StackOn(below)
		}
		below = b
		p.Add(b)
		if len(f.Series) > 1 {
			p.Legend.Add(s.Name, b)
		}
	}
	if _, _, _, top := below.DataRange(); top > 0 {
		p.Y.Max = top * 1.25 // room for the legend
	}
	return nil
}

// thinLabels leaves out labels that would run into each other.
func thinLabels(labels []string) []string {
	every := max(1, len(strings.Join(labels, " "))/90)
	out := make([]string, len(labels))
	for i, l := range labels {
		if i%every == 0 {
			out[i] = l
		}
	}
	return out
}

// kindColour is an op's place in the palette, as on the page.
var kindColour = map[schedule.Kind]int{schedule.F: 0, schedule.B: 1, schedule.I: 7, schedule.W: 2, schedule.R: 3, schedule.U: 5}

// laneBoxes draws a group: the first rank on top.
type laneBoxes struct{ g Group }

func (l laneBoxes) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	n := len(l.g.Lanes)
	for r, lane := range l.g.Lanes {
		top, foot := ty(float64(n-r)-0.1), ty(float64(n-r-1)+0.1)
		for _, o := range lane.Ops {
			low := foot
			if o.Op.Kind == schedule.R { // beside the others
				low = top - (top-foot)/5
			}
			if a, b := tx(o.Start), tx(o.End); b > a {
				c.FillPolygon(palette[kindColour[o.Op.Kind]], []vg.Point{{X: a, Y: low}, {X: b, Y: low}, {X: b, Y: top}, {X: a, Y: top}})
			}
		}
	}
}

func (l laneBoxes) DataRange() (x0, x1, y0, y1 float64) {
	return 0, max(l.g.end(), 1e-9), 0, float64(len(l.g.Lanes))
}

// swatch is a colour in a legend.
type swatch struct{ color color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.color, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}})
}

func timelinePlot(name string, g Group) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = name+", "+g.Name, "seconds"
	p.Add(laneBoxes{g})
	var ticks []plot.Tick
	used := map[schedule.Kind]bool{}
	for r, l := range g.Lanes {
		t := plot.Tick{Value: float64(len(g.Lanes)-r) - 0.5}
		if r%max(1, len(g.Lanes)/16) == 0 {
			t.Label = l.Label
		}
		ticks = append(ticks, t)
		for _, o := range l.Ops {
			used[o.Op.Kind] = true
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	for k := range schedule.Kind(schedule.NumKinds) {
		if used[k] {
			p.Legend.Add(k.String(), swatch{palette[kindColour[k]]})
		}
	}
	p.Legend.Top, p.Legend.YOffs = true, vg.Points(16)
	p.Y.Max = float64(len(g.Lanes)) * 1.25
	return p
}
