package plan

import (
	"fmt"
	"slices"
	"strings"
)

// flag is a key of the [cluster] section that is on or off.
type flag struct {
	key string
	set func(c *Cluster, on bool)
}

var flags = []flag{
	{"gather_ahead", func(c *Cluster, on bool) { c.GatherAhead = on }},
	{"regather", func(c *Cluster, on bool) { c.Regather = on }},
	{"fused", func(c *Cluster, on bool) { c.Fused = on }},
	{"loose_loss", func(c *Cluster, on bool) { c.LooseLoss = on }},
	{"core_again", func(c *Cluster, on bool) { c.CoreAgain = on }},
	{"node_in_switch", func(c *Cluster, on bool) { c.Links[0].InSwitch = on }},
	{"network_in_switch", func(c *Cluster, on bool) { c.last().InSwitch = on }},
	{"megatron_memory", func(c *Cluster, on bool) {
		if c.Runtime = ""; on {
			c.Runtime = MegatronCore
		}
	}},
}

type complaint func(key string, v any, rule, hint string)

// setFlag sets a flag, if key is one.
func (c *Cluster) setFlag(key string, v any, bad complaint) bool {
	i := slices.IndexFunc(flags, func(f flag) bool { return f.key == key })
	if i < 0 {
		return false
	}
	on, ok := v.(bool)
	if !ok {
		bad(key, v, "want true or false", "use true")
		return true
	}
	flags[i].set(c, on)
	return true
}

// setProgram takes the rates that a program was measured to reach on the device.
func (c *Cluster) setProgram(v any, bad complaint) {
	var names []string
	if strings.HasPrefix(c.Name, "a100") {
		names = append(names, megatron2021)
		if v == megatron2021 {
			*c = asIn2021(*c)
			return
		}
	}
	for _, r := range fitted {
		if v == r.software && r.on(c.Name) {
			ratesOf(r.software, c)
			return
		}
		if r.on(c.Name) {
			names = append(names, r.software)
		}
	}
	hint := "leave it out: no program was measured on it"
	if len(names) > 0 {
		hint = "measured on it: " + strings.Join(names, ", ")
	}
	bad("program", v, "not measured on "+c.Name, hint)
}

// setLinks replaces the device's links: [[cluster.link]] tables, innermost first, each with the number of devices that it joins. The last may leave
// that out, and joins all.
func (c *Cluster) setLinks(v any, bad complaint) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		bad("link", v, "want tables [[cluster.link]], innermost first", "for example name, gpus = 8, bandwidth_gbs = 450, latency_us = 3.4")
		return
	}
	c.Links = nil
	for i, entry := range list {
		at := fmt.Sprintf("link[%d]", i)
		table, ok := entry.(map[string]any)
		if !ok {
			bad(at, entry, "want a table", "[[cluster.link]]")
			continue
		}
		c.Links = append(c.Links, linkOf(at, table, i == len(list)-1, bad))
	}
	for i := 1; i < len(c.Links); i++ {
		inner, outer := c.Links[i-1].Span, c.Links[i].Span
		if outer > 0 && (outer <= inner || outer%max(1, inner) != 0) {
			bad(fmt.Sprintf("link[%d].gpus", i), outer, fmt.Sprintf("want a multiple of the link inside it, %d", inner), fmt.Sprintf("use %d", 2*inner))
		}
	}
}

func linkOf(at string, table map[string]any, last bool, bad complaint) Link {
	l := Link{Name: at, Base: collective}
	for key, v := range table {
		x, isNumber := number(v)
		switch key {
		case "name":
			l.Name = fmt.Sprint(v)
		case "in_switch":
			on, ok := v.(bool)
			if !ok {
				bad(at+"."+key, v, "want true or false", "use true")
			}
			l.InSwitch = on
		case "gpus", "bandwidth_gbs", "latency_us":
			if !isNumber || !(x > 0) || x > 1e9 {
				bad(at+"."+key, v, "want a number above 0", "see the data sheet of the link")
				continue
			}
			switch key {
			case "gpus":
				l.Span = int(x)
			case "bandwidth_gbs":
				l.Bandwidth = x * giga
			default:
				l.Latency = x * us
			}
		default:
			bad(at+"."+key, v, "no such key", "keys: name, gpus, bandwidth_gbs, latency_us, in_switch")
		}
	}
	for _, m := range []struct {
		key     string
		missing bool
	}{{"bandwidth_gbs", table["bandwidth_gbs"] == nil}, {"latency_us", table["latency_us"] == nil}, {"gpus", !last && table["gpus"] == nil}} {
		if m.missing {
			bad(at+"."+m.key, "nothing", "is needed", "only the last link may leave out gpus, and joins all")
		}
	}
	return l
}
