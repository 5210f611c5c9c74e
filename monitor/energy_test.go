package monitor

import (
	"errors"
	"testing"
	"time"

	"triax/train"
)

// TestEnergy: a step's energy is the counter's difference; a device that does not count has power only; a failed read leaves nothing to show.
func TestEnergy(t *testing.T) {
	m := New()
	at, broken := 0.0, false
	m.Measure(func() ([]Usage, error) {
		if broken {
			return nil, errors.New("lost")
		}
		return []Usage{{0, "new", 300, 1000 + at, true}, {1, "old", 250, 0, false}}, nil
	})
	step := func() map[string]float64 {
		m.Step(train.Progress{Step: 1, Steps: 9, Tokens: 1, Took: time.Second})
		return scrape(t, m)
	}
	at = 42
	got := step()
	for name, want := range map[string]float64{
		`triax_step_energy_joules{device="0",name="new"}`: 42, `triax_device_energy_joules_total{device="0",name="new"}`: 1042,
		`triax_device_power_watts{device="0",name="new"}`: 300, `triax_device_power_watts{device="1",name="old"}`: 250, `triax_device_read_failures_total`: 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %g (%v), want %g", name, v, ok, want)
		}
	}
	old := `triax_step_energy_joules{device="1",name="old"}`
	if _, ok := got[old]; ok {
		t.Error("a device that does not count has energy")
	}
	broken = true
	got = step()
	if _, ok := got[`triax_device_power_watts{device="0",name="new"}`]; ok || got[`triax_device_read_failures_total`] != 1 {
		t.Errorf("after a failed read: %v", got)
	}
	broken = false
	if _, ok := step()[`triax_step_energy_joules{device="0",name="new"}`]; ok {
		t.Error("the first read after a failure has a step's energy")
	}
	at = 50
	if v := step()[`triax_step_energy_joules{device="0",name="new"}`]; v != 8 {
		t.Errorf("then %g joules, want 8", v)
	}
}

// TestNoDevices: without devices there are no such metrics.
func TestNoDevices(t *testing.T) {
	for name := range scrape(t, New()) {
		if name == "triax_device_read_failures_total" {
			t.Error(name)
		}
	}
}
