package nvml

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"triax/plan"
)

// machine is n devices, all joined by NVLink in groups of island.
func machine(name string, n, island, links int) Machine {
	m := Machine{Driver: "580.65.06", CUDA: "13.0", Paths: make([][]Path, n)}
	for i := range n {
		m.Devices = append(m.Devices, Device{Name: name, Memory: 80e9, Major: 9, Links: links, Generation: 5, Lanes: 16, Watts: 650})
		for j := range n {
			p := Path{Bus: System}
			if i/island == j/island && island > 1 {
				p.Links = links
			}
			m.Paths[i] = append(m.Paths[i], p)
		}
	}
	return m
}

// TestSectionParses: the planner's own parser takes every form of section, and understands what was meant.
func TestSectionParses(t *testing.T) {
	names := map[string]string{
		"NVIDIA H200": "h200", "NVIDIA H100 80GB HBM3": "h100-sxm", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA A100-SXM4-80GB": "a100-80",
		"NVIDIA A100-SXM4-40GB": "a100-40", "NVIDIA B200": "b200", "NVIDIA GB200": "gb200-nvl72", "NVIDIA B300 SXM6 AC": "b300", "NVIDIA GB300": "gb300-nvl72",
		"NVIDIA H800": "h800", "NVIDIA GeForce RTX 4090": "rtx4090",
	}
	for name, preset := range names {
		for _, shape := range []struct{ devices, island int }{{1, 1}, {8, 8}, {8, 1}, {8, 2}, {4, 4}} {
			m := machine(name, shape.devices, shape.island, 18)
			text, err := m.Section()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var file struct{ Cluster map[string]any }
			d := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
			if err := d.Decode(&file); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			c, err := plan.ClusterOf(file.Cluster)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if c.Name != preset || c.Memory != 80e9 || c.Watts != 650 {
				t.Errorf("%s: %s, %g bytes, %g W", name, c.Name, c.Memory, c.Watts)
			}
			if strings.HasSuffix(preset, "nvl72") { // the rack's links stay, whatever one machine of it shows
				if c.Links[0].Span != 72 {
					t.Errorf("%s: first link %+v", name, c.Links[0])
				}
				continue
			}
			if first := c.Links[0]; shape.island > 1 && (first.Span != shape.island || first.Bandwidth != 18*m.Devices[0].linkRate()*1e9) || shape.island == 1 && shape.devices > 1 && (first.Span != 8 || first.Bandwidth != 50e9) {
				t.Errorf("%s, %v: first link %+v", name, shape, first)
			}
			if last := c.Links[len(c.Links)-1]; last.Span != 0 || !(last.Bandwidth > 0) {
				t.Errorf("%s, %v: last link %+v", name, shape, last)
			}
		}
	}
}

// TestGraceHopper: a name that contains another device's is not taken for it.
func TestGraceHopper(t *testing.T) {
	for _, name := range []string{"NVIDIA GH200 480GB", "NVIDIA H20", "NVIDIA A10", "NVIDIA H200 NVL"} {
		if p := (Device{Name: name}).Preset(); p != "" {
			t.Errorf("%s is taken for %s", name, p)
		}
	}
}

// TestUneven: islands of different sizes have no link of their own, since the planner's join equally many.
func TestUneven(t *testing.T) {
	m := machine("NVIDIA H200", 6, 4, 18)
	text, err := m.Section()
	if err != nil || strings.Contains(text, "nvlink") || !strings.Contains(text, "\"pcie\"") {
		t.Errorf("%v\n%s", err, text)
	}
}
