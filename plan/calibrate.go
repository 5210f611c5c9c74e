package plan

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Fit is a cluster's three constants as a handful of measured runs give them:
//
//	seconds = Scale x planned + Slot x (layers x microbatches of a rank) + Fixed
//
// Scale is what compute and communication cost beside the plan, Slot what a layer costs for each microbatch whatever its size, Fixed what a
// step costs.
type Fit struct{ Scale, Slot, Fixed float64 }

// String prints the constants.
func (f Fit) String() string {
	return fmt.Sprintf("%.3f x plan + %s a layer and microbatch + %s a step", f.Scale, Seconds(f.Slot), Seconds(f.Fixed))
}

// Seconds is the calibrated time of a run.
func (f Fit) Seconds(c Checked) float64 { return f.Scale*c.Predicted + f.Slot*c.Slots + f.Fixed }

// terms are what the constants multiply.
func (c Checked) terms() [3]float64 { return [3]float64{c.Predicted, c.Slots, 1} }

// Calibrate fits the constants by least squares of the relative error. Constants that come out negative are left out, since no
// layer and no step takes less than nothing.
func Calibrate(runs []Checked) (Fit, error) {
	if len(runs) < 3 {
		return Fit{}, fmt.Errorf("%d runs: three constants need at least 3", len(runs))
	}
	best, least := Fit{}, math.Inf(1)
	for mask := 1; mask < 8; mask++ { // which constants take part
		if mask&1 == 0 {
			continue
		}
		f, err := fit(runs, mask)
		if err != nil || f.Slot < 0 || f.Fixed < 0 || f.Scale <= 0 {
			continue
		}
		if e := residual(runs, f); e < least {
			best, least = f, e
		}
	}
	if math.IsInf(least, 1) {
		return Fit{}, errors.New("no constants fit these runs")
	}
	return best, nil
}

func fit(runs []Checked, mask int) (Fit, error) {
	var use []int
	for i := range 3 {
		if mask>>i&1 == 1 {
			use = append(use, i)
		}
	}
	a, b := mat.NewDense(len(runs), len(use), nil), mat.NewDense(len(runs), 1, nil)
	for r, c := range runs {
		terms := c.terms()
		for j, i := range use {
			a.Set(r, j, terms[i]/c.Measured.Seconds)
		}
		b.Set(r, 0, 1)
	}
	var x mat.Dense
	if err := x.Solve(a, b); err != nil {
		return Fit{}, err
	}
	var out [3]float64
	for j, i := range use {
		out[i] = x.At(j, 0)
	}
	return Fit{out[0], out[1], out[2]}, nil
}

func residual(runs []Checked, f Fit) float64 {
	sum := 0.0
	for _, c := range runs {
		e := f.Seconds(c)/c.Measured.Seconds - 1
		sum += e * e
	}
	return sum
}

// Draw is one calibration: fitted on a few runs, tried on the rest.
type Draw struct {
	Fit   Fit
	Used  int
	Score Score // on the runs not used
	// Covered is the share of the runs not used whose time lies in its interval of 95 %.
	Covered float64
}

// Draws calibrates on n runs drawn at random, so many times, and returns the draws ordered by mean error on the rest.
func Draws(runs []Checked, n, times int, seed uint64) ([]Draw, error) {
	if n >= len(runs) {
		return nil, fmt.Errorf("%d runs drawn of %d: some must be left to try the fit on", n, len(runs))
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var out []Draw
	for range times {
		order := rng.Perm(len(runs))
		var used, rest []Checked
		for i, j := range order {
			if i < n {
				used = append(used, runs[j])
			} else {
				rest = append(rest, runs[j])
			}
		}
		f, err := Calibrate(used)
		if err != nil {
			return nil, err
		}
		report, err := Residuals(used, f)
		if err != nil {
			return nil, err
		}
		inside := 0
		for i := range rest {
			if low, high := report.Interval(rest[i]); low <= rest[i].Measured.Seconds && rest[i].Measured.Seconds <= high {
				inside++
			}
			rest[i].Predicted = f.Seconds(rest[i])
		}
		out = append(out, Draw{f, n, score("rest", rest), float64(inside) / float64(len(rest))})
	}
	slices.SortFunc(out, func(a, b Draw) int {
		switch {
		case a.Score.Mean < b.Score.Mean:
			return -1
		case a.Score.Mean > b.Score.Mean:
			return 1
		}
		return 0
	})
	return out, nil
}
