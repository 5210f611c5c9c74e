package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Report is what a calibration leaves open.
type Report struct {
	Fit    Fit
	Spread float64    // standard deviation of the relative error, with the degrees of freedom that the fit leaves
	Sigma  [3]float64 // standard errors of Scale, Slot and Fixed; 0 for a constant that is left out
	Terms  []Term

	use   []int
	cov   *mat.Dense // of the used constants, over Spread^2
	quant float64    // of Student's t at 97.5 %
}

// Term is a part of the planned step, and what these runs say of it.
type Term struct {
	Name     string
	Low, Top float64 // its smallest and largest share of a planned step
	Slope    float64 // how much the error grows with that share
	Sigma    float64 // standard error of Slope
}

// Unmeasured says why runs cannot tell whether the term is right, or nothing.
func (t Term) Unmeasured() string {
	switch {
	case t.Top < 0.01:
		return "unmeasured: under 1% of every step"
	case t.Top-t.Low < 0.05:
		return "unmeasured: its share is the same in every run"
	}
	return ""
}

// stepTerms are the parts of a step, by name.
var stepTerms = []struct {
	name string
	of   func(Step) float64
}{
	{"compute", func(s Step) float64 { return s.Compute }},
	{"communication inside layers", func(s Step) float64 { return s.Tensor }},
	{"gradients and parameters", func(s Step) float64 { return s.Data }},
	{"update", func(s Step) float64 { return s.Optimizer }},
	{"idle", func(s Step) float64 { return s.Idle }},
}

// Residuals says how sure a fit is: linear regression of measured over fitted times, with errors taken as normal and relative.
func Residuals(runs []Checked, f Fit) (*Report, error) {
	r := &Report{Fit: f}
	for i, x := range []float64{f.Scale, f.Slot, f.Fixed} {
		if x != 0 {
			r.use = append(r.use, i)
		}
	}
	free := len(runs) - len(r.use)
	if free < 1 {
		return nil, fmt.Errorf("%d runs and %d constants: a prediction interval needs one run more than constants; leave %d out or add runs", len(runs), len(r.use), 1-free)
	}
	r.Spread = math.Sqrt(residual(runs, f) / float64(free))
	r.quant = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(free)}.Quantile(0.975)
	a := mat.NewDense(len(runs), len(r.use), nil)
	for i, c := range runs {
		a.SetRow(i, r.row(c, c.Measured.Seconds))
	}
	var normal mat.Dense
	normal.Mul(a.T(), a)
	r.cov = &mat.Dense{}
	if err := r.cov.Inverse(&normal); err != nil {
		return nil, fmt.Errorf("these runs cannot tell the constants apart: %w", err)
	}
	for j, i := range r.use {
		r.Sigma[i] = r.Spread * math.Sqrt(r.cov.At(j, j))
	}
	for _, t := range stepTerms {
		r.Terms = append(r.Terms, termOf(t.name, t.of, runs, f))
	}
	return r, nil
}

func (r *Report) row(c Checked, over float64) []float64 {
	terms := c.terms()
	row := make([]float64, len(r.use))
	for j, i := range r.use {
		row[j] = terms[i] / over
	}
	return row
}

// termOf regresses the error of the fitted times on a term's share.
func termOf(name string, of func(Step) float64, runs []Checked, f Fit) Term {
	var share, err []float64
	for _, c := range runs {
		share = append(share, of(c.Step)/c.Step.Seconds)
		err = append(err, f.Seconds(c)/c.Measured.Seconds-1)
	}
	t := Term{Name: name, Low: slices.Min(share), Top: slices.Max(share)}
	if t.Unmeasured() != "" || len(runs) < 3 {
		return t
	}
	alpha, beta := stat.LinearRegression(share, err, nil, false)
	ss, mean := 0.0, stat.Mean(share, nil)
	sxx := 0.0
	for i, x := range share {
		e := err[i] - alpha - beta*x
		ss += e * e
		sxx += (x - mean) * (x - mean)
	}
	t.Slope, t.Sigma = beta, math.Sqrt(ss/float64(len(runs)-2)/sxx)
	return t
}

// Interval is where the time of a run lies with probability 95 %, in seconds.
func (r *Report) Interval(c Checked) (low, high float64) {
	at := r.Fit.Seconds(c)
	x := mat.NewVecDense(len(r.use), r.row(c, at))
	var cx mat.VecDense
	cx.MulVec(r.cov, x)
	half := r.quant * r.Spread * math.Sqrt(1+mat.Dot(x, &cx))
	return at * max(0, 1-half), at * (1 + half)
}

// String prints constants with their errors, and a line a term.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "compute scale        %.3f ± %.3f\n", r.Fit.Scale, r.quant*r.Sigma[0])
	for _, c := range []struct {
		name     string
		x, sigma float64
	}{{"a layer, microbatch ", r.Fit.Slot, r.Sigma[1]}, {"a step              ", r.Fit.Fixed, r.Sigma[2]}} {
		if c.x == 0 {
			fmt.Fprintf(&b, "%s unmeasured: these runs show none\n", c.name)
			continue
		}
		fmt.Fprintf(&b, "%s %s ± %s\n", c.name, Seconds(c.x), Seconds(r.quant*c.sigma))
	}
	fmt.Fprintf(&b, "a run like these     within %.1f%% of its fitted time, 19 times of 20\n", 100*r.quant*r.Spread)
	rows := [][]string{{"part of the step", "share", "error for each 10 points of share"}}
	for _, t := range r.Terms {
		said := t.Unmeasured()
		if said == "" {
			said = fmt.Sprintf("%+.1f%% ± %.1f%%", 10*t.Slope, 10*r.quant*t.Sigma)
			if math.Abs(t.Slope) > r.quant*t.Sigma {
				said += "  planned too " + map[bool]string{true: "high", false: "low"}[t.Slope > 0]
			}
		}
		rows = append(rows, []string{t.Name, fmt.Sprintf("%.1f%% to %.1f%%", 100*t.Low, 100*t.Top), said})
	}
	b.WriteString(table(rows))
	return b.String()
}

// Fitted prints runs with what the fit makes of them, those furthest off first.
func Fitted(runs []Checked, r *Report, show int) string {
	off := func(c Checked) float64 { return r.Fit.Seconds(c)/c.Measured.Seconds - 1 }
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Checked) int { return cmp.Compare(math.Abs(off(b)), math.Abs(off(a))) })
	rows := [][]string{{"run", "measured", "planned", "fitted", "95 % between", "off"}}
	for _, c := range runs[:min(show, len(runs))] {
		low, high := r.Interval(c)
		rows = append(rows, []string{c.ID, Seconds(c.Measured.Seconds), Seconds(c.Predicted), Seconds(r.Fit.Seconds(c)), Seconds(low) + " and " + Seconds(high), fmt.Sprintf("%+.1f%%", 100*off(c))})
	}
	return table(rows)
}
