package monitor

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Usage is what a device draws, and the energy that it has used since some moment in the past; Counted is false on devices that do not
// count energy.
type Usage struct {
	Device  int
	Name    string
	Watts   float64
	Joules  float64
	Counted bool
}

// meters are a process's devices: what they had used when the last step ended, and in that step.
type meters struct {
	read   func() ([]Usage, error)
	before []Usage
	step   []float64 // joules, of devices that count
	failed int
}

// Measure lets the monitor read the devices' power and energy at the end of every step of rank 0. Energy is of the whole device, whoever uses it.
func (m *Monitor) Measure(read func() ([]Usage, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meters = meters{read: read}
	m.meters.observe()
}

// observe reads once. After a failure there is nothing to show until it has been read twice again: a number must not outlive its step.
func (u *meters) observe() {
	if u.read == nil {
		return
	}
	now, err := u.read()
	if err != nil {
		u.failed++
		u.before, u.step = nil, nil
		return
	}
	u.step = nil
	if len(u.before) == len(now) {
		u.step = make([]float64, len(now))
		for i := range now {
			u.step[i] = now[i].Joules - u.before[i].Joules
		}
	}
	u.before = now
}

var (
	watts      = describe("device_power_watts", "Power that a device draws, at the end of the last step.", "device", "name")
	joules     = describe("device_energy_joules_total", "Energy that a device has used, by its own counter.", "device", "name")
	stepJoules = describe("step_energy_joules", "Energy that a device used from the end of the step before to that of the last.", "device", "name")
	unread     = describe("device_read_failures_total", "How often the devices' power and energy could not be read.")
)

func (u *meters) collect(ch chan<- prometheus.Metric) {
	if u.read == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(unread, prometheus.CounterValue, float64(u.failed))
	for i, d := range u.before {
		who := []string{strconv.Itoa(d.Device), d.Name}
		ch <- prometheus.MustNewConstMetric(watts, prometheus.GaugeValue, d.Watts, who...)
		if !d.Counted {
			continue
		}
		ch <- prometheus.MustNewConstMetric(joules, prometheus.CounterValue, d.Joules, who...)
		if u.step != nil {
			ch <- prometheus.MustNewConstMetric(stepJoules, prometheus.GaugeValue, u.step[i], who...)
		}
	}
}
