package nvml

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// sheets are the planner's names for devices, by words that the driver's name for them has; the first that fits counts.
var sheets = []struct {
	preset string
	words  []string
}{
	{"gb300-nvl72", []string{"GB300"}}, {"gb200-nvl72", []string{"GB200"}}, {"b300", []string{"B300"}}, {"b200", []string{"B200"}},
	{"h200", []string{"H200"}}, {"h800", []string{"H800"}},
	{"h100-pcie", []string{"H100", "PCIe"}}, {"h100-96", []string{"H100", "96GB"}}, {"h100-sxm", []string{"H100", "HBM3"}},
	{"a100-80", []string{"A100", "80GB"}}, {"a100-40", []string{"A100", "40GB"}}, {"rtx4090", []string{"RTX", "4090"}},
}

// Preset is the planner's name for a device; "" where it has no data sheet of it. The NVL cards of a kind are slower than its modules.
func (d Device) Preset() string {
	has := strings.FieldsFunc(d.Name, func(r rune) bool { return r == ' ' || r == '-' })
	if slices.Contains(has, "NVL") {
		return ""
	}
	for _, s := range sheets {
		if !slices.ContainsFunc(s.words, func(w string) bool { return !slices.Contains(has, w) }) {
			return s.preset
		}
	}
	return ""
}

// linkRate is what one NVLink carries in one direction, GB/s, by the data sheets: 25 on A100 (third generation) and H100 (fourth), 50 on B200 (fifth).
func (d Device) linkRate() float64 {
	if d.Major >= 10 {
		return 50
	}
	return 25
}

// busRate is what PCI Express carries in one direction, GB/s, about 0.8 of the raw rate, as the planner's own presets have it.
func (d Device) busRate() float64 {
	rate := 25.0 // of the fourth generation's 16 lanes
	for g := d.Generation; g > 4; g-- {
		rate *= 2
	}
	for g := max(1, d.Generation); d.Generation > 0 && g < 4; g++ {
		rate /= 2
	}
	if d.Lanes > 0 {
		rate *= float64(d.Lanes) / 16
	}
	return rate
}

// Section is the planner's [cluster] section for machines like this one, joined by the preset's network. It fails on devices that differ, and on
// those that the planner has no data sheet of.
func (m Machine) Section() (string, error) {
	if len(m.Devices) == 0 {
		return "", errors.New("no devices")
	}
	d := m.Devices[0]
	for i, other := range m.Devices {
		if other.Name != d.Name {
			return "", fmt.Errorf("device 0 is %s and device %d is %s; a plan is of one kind of device: hide the others with CUDA_VISIBLE_DEVICES", d.Name, i, other.Name)
		}
	}
	preset := d.Preset()
	if preset == "" {
		return "", fmt.Errorf("the planner has no data sheet of %s: name the nearest with cluster.gpu, and its own figures with peak_tflops and memory_bandwidth_gbs", d.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[cluster] # %d x %s\ngpu = %q\nmemory_gb = %.1f\n", len(m.Devices), d.Name, preset, float64(d.Memory)/1e9)
	if d.Watts > 0 {
		fmt.Fprintf(&b, "watts = %.0f\n", d.Watts)
	}
	links := float64(d.Links) * d.linkRate()
	switch span := m.span(); {
	case strings.HasSuffix(preset, "nvl72") && d.Links > 0:
		fmt.Fprintf(&b, "# joined by NVLink with other machines of the rack, as the preset has it\n")
	case len(m.Devices) == 1:
		fmt.Fprintf(&b, "gpus_per_node = 1\n")
	case span == len(m.Devices):
		fmt.Fprintf(&b, "gpus_per_node = %d\nnode_bandwidth_gbs = %g # %d NVLinks of %g\n", span, links, d.Links, d.linkRate())
	default:
		if span > 1 {
			fmt.Fprintf(&b, "\n[[cluster.link]]\nname = \"nvlink\"\ngpus = %d\nbandwidth_gbs = %g # %d NVLinks of %g\nlatency_us = 3.4\n", span, links, d.Links, d.linkRate())
		}
		fmt.Fprintf(&b, "\n[[cluster.link]]\nname = \"pcie\"\ngpus = %d\nbandwidth_gbs = %g\nlatency_us = 5.7\n", len(m.Devices), d.busRate())
		fmt.Fprintf(&b, "\n[[cluster.link]]\nname = \"network\" # not seen from here: a card of 400 Gb/s for each device\nbandwidth_gbs = 50\nlatency_us = 14\n")
	}
	return b.String(), nil
}

// span is how many devices an island has, where all have as many; else 1, since the planner's links join equally many.
func (m Machine) span() int {
	islands := m.Islands()
	for _, members := range islands {
		if len(members) != len(islands[0]) {
			return 1
		}
	}
	return len(islands[0])
}
