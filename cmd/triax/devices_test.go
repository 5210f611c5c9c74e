package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"triax/cuda/driver"
	"triax/cuda/nvml"
	"triax/launch"
	"triax/mesh"
)

// twoPairs is a machine of four devices joined two by two.
func twoPairs(name string) nvml.Machine {
	m := nvml.Machine{Driver: "580.65.06", CUDA: "13.0"}
	for i := range 4 {
		m.Devices = append(m.Devices, nvml.Device{Name: name, Memory: 150e9, Major: 9, Links: 18, Generation: 5, Lanes: 16})
		m.Paths = append(m.Paths, make([]nvml.Path, 4))
		m.Paths[i][(i+2)%4].Links = 18
	}
	return m
}

// TestMachineText: each state has its own words, and none is taken for another.
func TestMachineText(t *testing.T) {
	used := []nvml.Usage{{Device: 0, Watts: 120, Joules: 3.21e6, Counted: true}, {Device: 1, Watts: 80}}
	for _, c := range []struct {
		name string
		m    nvml.Machine
		used []nvml.Usage
		err  error
		want []string
	}{
		{"no library", nvml.Machine{}, nil, fmt.Errorf("nvml: %w", driver.ErrAbsent), []string{"GPUs: none", "not installed", "Runs use the processor"}},
		{"no device", nvml.Machine{}, nil, fmt.Errorf("nvml: %w", driver.ErrNoDevice), []string{"GPUs: none", "no device behind it", "--gpus all"}},
		{"broken", nvml.Machine{}, nil, errors.New("GPU is lost"), []string{"does not say: GPU is lost"}},
		{"devices", twoPairs("NVIDIA H200"), used, nil, []string{"GPUs: 4", "draws 120 W, has used 3.2 MJ", "1  draws 80 W\n", "[[0 2] [1 3]]", "[cluster]", `gpu = "h200"`}},
		{"unknown", twoPairs("NVIDIA T400"), nil, nil, []string{"GPUs: 4", "no data sheet of NVIDIA T400"}},
		{"no power", twoPairs("NVIDIA H200"), nil, errors.New("not permitted"), []string{"GPUs: 4", "power: not permitted", "[cluster]"}},
	} {
		text := machineText(c.m, c.used, c.err)
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, text)
			}
		}
		if c.err == nil && strings.Contains(text, "none") {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// TestOnDevices: tensor ranks are put on joined devices; where they cannot be, the text says what would fit.
func TestOnDevices(t *testing.T) {
	for tp, want := range map[int]string{2: "rank 0 on 0  rank 1 on 2  rank 2 on 1  rank 3 on 3", 4: "warning: on the GPUs of this machine: mesh.tp = 4"} {
		m, err := mesh.New(nil, map[mesh.Axis]int{mesh.TP: tp, mesh.DP: 4 / tp})
		if err != nil {
			t.Fatal(err)
		}
		if text := onDevices(launch.Even(m, 4), twoPairs("NVIDIA H200")); !strings.Contains(text, want) {
			t.Errorf("tp %d: %s", tp, text)
		}
	}
}

// TestDoctorWithoutConfig: on any machine, a text and no error.
func TestDoctorWithoutConfig(t *testing.T) {
	cmd := root()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"doctor"})
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "GPUs: ") {
		t.Errorf("%v\n%s", err, &out)
	}
}
