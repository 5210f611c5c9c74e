package plan_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"triax/plan"
)

// made are runs whose times are made from known constants, with errors of 5 %.
func made(rng *rand.Rand, n int) (runs []plan.Checked) {
	for range n {
		share := 0.3 * rng.Float64()
		s := plan.Step{Seconds: 1 + 9*rng.Float64()}
		s.Compute, s.Data = (1-share)*s.Seconds, share*s.Seconds
		c := plan.Checked{Predicted: s.Seconds, Step: s, Slots: 1000 * rng.Float64()}
		c.Measured.Seconds = (1.2*c.Predicted + 0.002*c.Slots) * (1 + 0.05*rng.NormFloat64())
		runs = append(runs, c)
	}
	return runs
}

// TestIntervals: a calibration's intervals of 95 % hold about that many of the runs that it has not seen, its constants lie within their errors, and
// parts of the step that no run shows are said to be unmeasured.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	inside, all, near := 0, 0, 0
	for range 100 {
		runs := made(rng, 12)
		f, err := plan.Calibrate(runs)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Residuals(runs, f)
		if err != nil {
			t.Fatal(err)
		}
		if d := f.Scale - 1.2; d*d < 9*r.Sigma[0]*r.Sigma[0] {
			near++
		}
		for _, c := range made(rng, 20) {
			all++
			if low, high := r.Interval(c); low <= c.Measured.Seconds && c.Measured.Seconds <= high {
				inside++
			}
		}
	}
	if share := float64(inside) / float64(all); share < 0.91 || share > 0.99 {
		t.Errorf("%.1f%% of unseen runs lie in intervals of 95%%", 100*share)
	}
	if near < 90 {
		t.Errorf("%d of 100 scales lie within three standard errors", near)
	}
}

// TestResidualsByTerm: a term priced at twice its cost is named, one that no run has is said to be unmeasured.
func TestResidualsByTerm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 10))
	runs := made(rng, 60)
	for i := range runs {
		s := runs[i].Step
		runs[i].Measured.Seconds = (s.Compute + s.Data/2) * (1 + 0.01*rng.NormFloat64())
	}
	f, err := plan.Calibrate(runs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Residuals(runs, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Terms {
		switch sure := x.Slope - 3*x.Sigma; x.Name {
		case "gradients and parameters":
			if sure <= 0 || x.Unmeasured() != "" {
				t.Errorf("priced twice too high, said: %+v", x)
			}
		case "update", "idle", "communication inside layers":
			if !strings.HasPrefix(x.Unmeasured(), "unmeasured") {
				t.Errorf("in no run, said: %+v", x)
			}
		}
	}
	if _, err := plan.Residuals(runs[:3], plan.Fit{Scale: 1, Slot: 1, Fixed: 1}); err == nil || !strings.Contains(err.Error(), "one run more") {
		t.Errorf("three runs for three constants: %v", err)
	}
}
