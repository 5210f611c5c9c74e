package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Charts are drawn on a phone's width and scaled up on wider screens, so that their text stays readable on the smaller one.
const (
	chartWidth  = 360.0
	chartHeight = 220.0
	marginLeft  = 58.0
	marginRight = 10.0
	marginTop   = 10.0
	marginFoot  = 30.0
)

// drawing collects SVG elements. Colours are classes of page.css, which knows light and dark; all text is escaped, and what is no number is drawn
// at 0.
type drawing struct {
	b             strings.Builder
	width, height float64
}

func newDrawing(height float64) *drawing { return &drawing{width: chartWidth, height: height} }

// num keeps the file small, and valid whatever is drawn.
func num(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", min(max(x, -1e6), 1e6)), ".0")
}

// rect draws a box; title is what hovering shows.
func (d *drawing) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		class, num(x), num(y), num(max(w, 0)), num(max(h, 0)), html.EscapeString(title))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// text anchors at start, middle or end.
func (d *drawing) text(anchor string, x, y float64, s string) {
	fmt.Fprintf(&d.b, `<text class="%s" x="%s" y="%s">%s</text>`, anchor, num(x), num(y), html.EscapeString(s))
}

func (d *drawing) path(class string, points [][2]float64) {
	fmt.Fprintf(&d.b, `<polyline class="%s" points="`, class)
	for i, p := range points {
		if i > 0 {
			d.b.WriteByte(' ')
		}
		d.b.WriteString(num(p[0]) + "," + num(p[1]))
	}
	d.b.WriteString(`"/>`)
}

// dot is a point with a title.
func (d *drawing) dot(class string, x, y, r float64, title string) {
	fmt.Fprintf(&d.b, `<circle class="%s" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`, class, num(x), num(y), num(r), html.EscapeString(title))
}

// svg is the element; about is what a screen reader says.
func (d *drawing) svg(about string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		num(d.width), num(d.height), html.EscapeString(about), d.b.String()))
}

// axis maps values to places on a line of the drawing.
type axis struct {
	lo, hi   float64 // values
	from, to float64 // places
	log      bool
}

func (a axis) at(x float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		lo, hi, x = math.Log(lo), math.Log(hi), math.Log(x)
	}
	if !(hi > lo) {
		return (a.from + a.to) / 2
	}
	return a.from + (x-lo)/(hi-lo)*(a.to-a.from)
}

// ticks are round values between lo and hi, at most about n, counted in units (1024 for bytes makes 512 MiB a round one).
func ticks(lo, hi float64, n int, unit float64) (out []float64) {
	if !(hi > lo) || math.IsInf(hi, 0) || math.IsInf(lo, 0) {
		return []float64{lo}
	}
	step := roundUp((hi-lo)/float64(n)/unit) * unit
	for x := math.Ceil(lo/step) * step; x <= hi*(1+1e-9) && len(out) < 4*n; x += step {
		out = append(out, x)
	}
	return out
}

// roundUp is the next of 1, 2 and 5 times a power of ten.
func roundUp(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if f*p >= x*(1-1e-9) {
			return f * p
		}
	}
	return 10 * p
}

// byteUnit is the greatest binary unit below x.
func byteUnit(x float64) float64 {
	u := 1.0
	for u*1024 <= x && u < 1<<40 {
		u *= 1024
	}
	return u
}

// left draws a vertical axis with its grid.
func (d *drawing) left(a axis, marks []float64, text func(float64) string) {
	for _, x := range marks {
		y := a.at(x)
		d.line("grid", marginLeft, y, d.width-marginRight, y)
		d.text("end", marginLeft-5, y+3.5, text(x))
	}
}

// foot writes below the drawing, as many labels as there is room for.
func (d *drawing) foot(places []float64, labels []string) {
	widest := 0
	for _, l := range labels {
		widest = max(widest, len([]rune(l)))
	}
	every := 1
	if len(places) > 1 {
		gap := math.Abs(places[len(places)-1]-places[0]) / float64(len(places)-1)
		every = max(1, int(math.Ceil(float64(widest+1)*5.8/max(gap, 1e-3))))
	}
	for i, x := range places {
		if i%every == 0 {
			d.text("middle", x, d.height-marginFoot+14, labels[i])
		}
	}
}
