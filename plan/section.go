package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"triax/configs"
)

// setting is one key of the [cluster] section.
type setting struct {
	key   string
	about string
	set   func(c *Cluster, x float64)
	min   float64 // exclusive
	max   float64
}

var settings = []setting{
	{"peak_tflops", "dense TFLOP/s", func(c *Cluster, x float64) { c.Peak = x * tera }, 0, 1e6},
	{"memory_gb", "GB a device", func(c *Cluster, x float64) { c.Memory = x * giga }, 0, 1e6},
	{"memory_bandwidth_gbs", "GB/s of device memory", func(c *Cluster, x float64) { c.Bandwidth = x * giga }, 0, 1e9},
	{"efficiency", "share of the peak that large products reach", func(c *Cluster, x float64) { c.Efficiency = x }, 0, 1},
	{"efficiency8", "share of twice the peak that large products of 8-bit floats reach", func(c *Cluster, x float64) { c.Efficiency8 = x }, 0, 1},
	{"tensor_hidden", "share of the tensor axis' communication that products cut into parts hide, with mesh.tp_overlap", func(c *Cluster, x float64) { c.TensorHidden = x }, -1e-9, 1},
	{"depth", "inner dimension at which half of the efficiency is reached", func(c *Cluster, x float64) { c.Depth = x }, -1e-9, 1e6},
	{"attention_efficiency", "share of the peak that attention reaches", func(c *Cluster, x float64) { c.AttentionRate = x }, 0, 1},
	{"score_passes", "how often attention that keeps its scores moves them in a forward pass; 0 for tiled attention", func(c *Cluster, x float64) { c.ScorePasses = x }, -1e-9, 100},
	{"stream_efficiency", "share of memory bandwidth that passes reach", func(c *Cluster, x float64) { c.Stream = x }, 0, 1},
	{"launch_us", "microseconds a kernel costs beside its work", func(c *Cluster, x float64) { c.Launch = x * us }, -1e-9, 1e6},
	{"host_us", "microseconds in which the program issues a kernel", func(c *Cluster, x float64) { c.Host = x * us }, -1e-9, 1e6},
	{"pieces", "calls that ZeRO-3 makes of a layer's gather", func(c *Cluster, x float64) { c.Pieces = int(x) }, 0, 1000},
	{"gpus_per_node", "devices inside the first link", func(c *Cluster, x float64) { c.Links[0].Span = int(x) }, 0, 1e6},
	{"node_bandwidth_gbs", "GB/s of a device inside a node, one direction", func(c *Cluster, x float64) { c.Links[0].Bandwidth = x * giga }, 0, 1e9},
	{"node_latency_us", "microseconds a hop inside a node", func(c *Cluster, x float64) { c.Links[0].Latency, c.Links[0].Quick = x*us, nil }, -1e-9, 1e6},
	{"network_bandwidth_gbs", "GB/s of a device between nodes, one direction", func(c *Cluster, x float64) { c.last().Bandwidth = x * giga }, 0, 1e9},
	{"network_latency_us", "microseconds a hop between nodes", func(c *Cluster, x float64) { c.last().Latency, c.last().Quick = x*us, nil }, -1e-9, 1e6},
	{"oversubscription", "how many times the devices' links exceed the network's middle", func(c *Cluster, x float64) { c.last().Bandwidth /= x }, 0, 1e3},
	{"gradient_bytes", "bytes of an accumulated gradient", func(c *Cluster, x float64) { c.GradientBytes = int(x) }, 0, 8},
	{"state_bytes", "bytes of master copy and moments", func(c *Cluster, x float64) { c.StateBytes = int(x) }, 0, 32},
	{"slack", "share of memory that the allocator takes", func(c *Cluster, x float64) { c.Slack = x }, -1e-9, 1},
	{"disk_gbs", "GB/s that a rank reads or writes of offloaded state", func(c *Cluster, x float64) { c.Disk = x * giga }, 0, 1e6},
	{"hour_price", "money an hour and device", func(c *Cluster, x float64) { c.HourPrice = x }, -1e-9, 1e6},
	{"watts", "watts a device", func(c *Cluster, x float64) { c.Watts = x }, -1e-9, 1e6},
}

func (c *Cluster) last() *Link { return &c.Links[len(c.Links)-1] }

// ClusterOf reads the [cluster] section. Without one it is this machine. All that is wrong comes back as configs.Problems.
func ClusterOf(section map[string]any) (Cluster, error) {
	name := "cpu"
	var ps configs.Problems
	bad := func(key string, v any, rule, hint string) {
		ps = append(ps, configs.Problem{Field: "cluster." + key, Value: fmt.Sprint(v), Rule: rule, Hint: hint})
	}
	if v, ok := section["gpu"]; ok {
		if s, isText := v.(string); isText {
			name = s
		} else {
			bad("gpu", v, "want a name in quotes", `for example "a100-80"`)
		}
	}
	c, err := Preset(name)
	if err != nil {
		bad("gpu", fmt.Sprintf("%q", name), "no such device", err.Error())
		c, _ = Preset("a100-80")
	}
	c.Links = slices.Clone(c.Links)
	keys := make([]string, 0, len(section))
	for k := range section {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if v, ok := section["calibrated"]; ok {
		if c, err = readCluster(fmt.Sprint(v)); err != nil {
			bad("calibrated", v, err.Error(), "make one with triax bench --out FILE")
			c, _ = Preset("cpu")
		}
	}
	if v, ok := section["program"]; ok {
		c.setProgram(v, bad)
	}
	if v, ok := section["link"]; ok {
		c.setLinks(v, bad)
	}
	for _, k := range keys {
		switch k {
		case "calibrated", "gpu", "program", "link":
			continue
		case "precision":
			c.setPrecision(section[k], bad)
			continue
		}
		if done := c.setFlag(k, section[k], bad); done {
			continue
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.key == k })
		if i < 0 {
			bad(k, section[k], "no such key", "keys: gpu, program, precision, link, "+strings.Join(settingNames(), ", "))
			continue
		}
		s := settings[i]
		x, ok := number(section[k])
		if !ok || !(x > s.min && x <= s.max) {
			bad(k, section[k], fmt.Sprintf("want a number (%s) above %g and at most %g", s.about, max(0, s.min), s.max), "see the device's data sheet")
			continue
		}
		s.set(&c, x)
	}
	if len(ps) > 0 {
		return Cluster{}, ps
	}
	return c, nil
}

// readCluster reads what triax bench wrote.
func readCluster(path string) (Cluster, error) {
	f, err := os.Open(path)
	if err != nil {
		return Cluster{}, err
	}
	defer f.Close()
	var c Cluster
	d := json.NewDecoder(io.LimitReader(f, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Cluster{}, err
	}
	if !(c.Peak > 0 && c.Bandwidth > 0 && c.Memory > 0 && c.Efficiency > 0 && c.AttentionRate > 0 && c.Stream > 0 && len(c.Links) > 0) {
		return Cluster{}, errors.New("a rate is missing or not above 0")
	}
	for _, l := range c.Links {
		if !(l.Bandwidth > 0 && l.Latency >= 0) {
			return Cluster{}, fmt.Errorf("link %q: bandwidth is not above 0", l.Name)
		}
	}
	return c, nil
}

func (c *Cluster) setPrecision(v any, bad func(string, any, string, string)) {
	switch v {
	case "bf16", "fp16":
		c.Precision = "bf16"
	case "fp32":
		if c.Precision == "bf16" { // tensor cores run fp32 as tf32 at half the rate
			c.Peak /= 2
		}
		c.Precision, c.GradientBytes, c.StateBytes = "fp32", 4, 8
	case "fp8":
		if c.Precision == "fp32" || c.Efficiency8 == 0 {
			bad("precision", v, c.Name+" has no products of 8-bit floats that are known here", `use "bf16"`)
			return
		}
		c.Float8 = true
	default:
		bad("precision", v, "want bf16, fp16, fp8 or fp32", `use "bf16"`)
	}
}

func settingNames() (out []string) {
	for _, s := range settings {
		out = append(out, s.key)
	}
	for _, f := range flags {
		out = append(out, f.key)
	}
	return out
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	case int:
		return float64(x), true
	}
	return 0, false
}
