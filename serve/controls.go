package serve

import (
	"strconv"

	"triax/configs"
	"triax/nn"
	"triax/plan"
	"triax/schedule"
)

// control is one field of the page. Key is the configuration's.
type control struct {
	Key, Label, Title string
	Kind              string // "select", "number", "slider" (stops, and a number beside them) or "check"
	Options           []string
	Stops             []int
}

type controlGroup struct {
	Title    string
	Open     bool
	Controls []control
}

// powers are powers of two from 1.
func powers(most int) (out []int) {
	for n := 1; n <= most; n *= 2 {
		out = append(out, n)
	}
	return out
}

func devices() (out []string) {
	for _, c := range plan.Presets() {
		out = append(out, c.Name)
	}
	return out
}

func number(key, label, title string) control {
	return control{Key: key, Label: label, Title: title, Kind: "number"}
}

func slider(key, label, title string, most int) control {
	return control{Key: key, Label: label, Title: title, Kind: "slider", Stops: powers(most)}
}

// controls are the page's fields; every other key can be written as a line.
func controls() []controlGroup {
	return []controlGroup{
		{"Degrees", true, []control{
			slider("mesh.tp", "tensor", "ranks that share each layer's matrices", 64),
			slider("mesh.pp", "pipeline", "ranks that share the layers", 128),
			slider("mesh.dp", "data (ZeRO shards)", "ranks that see different samples and share states", 16384),
			slider("mesh.dp_replicate", "data (replicas)", "copies of the ranks that share states", 1024),
			slider("mesh.cp", "context", "ranks that share each sample's tokens", 64),
			slider("mesh.ep", "expert", "ranks that share the experts", 64),
			{Key: "mesh.sequence_parallel", Label: "sequence parallel", Title: "tensor peers share the tokens between layers", Kind: "check"},
		}},
		{"Schedule and batch", true, []control{
			{Key: "pipeline.schedule", Label: "schedule", Kind: "select", Options: schedule.Names()},
			slider("pipeline.microbatches", "microbatches", "of each data rank in a step", 1024),
			slider("pipeline.chunks", "chunks", "virtual stages a rank; 0 is the schedule's own", 16),
			slider("train.batch", "global batch", "samples a step", 16384),
			{Key: "zero.stage", Label: "ZeRO stage", Title: "1 shards optimizer states, 2 gradients too, 3 parameters too", Kind: "select", Options: []string{"0", "1", "2", "3"}},
			{Key: "zero.overlap", Label: "ZeRO overlap", Title: "traffic of the data axis beside computing", Kind: "check"},
			{Key: "model.recompute", Label: "recompute", Kind: "select", Options: nn.RecomputeModes},
		}},
		{"Model", true, []control{
			{Key: "model.preset", Label: "model", Kind: "select", Options: append([]string{""}, configs.Presets()...)},
			number("model.layers", "layers", ""), number("model.width", "width", ""), number("model.heads", "heads", ""), number("model.kv_heads", "key/value heads", ""),
			number("model.hidden", "hidden", "width of the feed-forward layer"), number("model.vocab", "vocabulary", ""), number("model.sequence", "tokens a sample", ""),
			number("model.experts", "experts", "feed-forward experts a block; 0 for none"),
		}},
		{"Cluster", true, []control{
			{Key: "cluster.gpu", Label: "device", Kind: "select", Options: devices()},
			number("cluster.memory_gb", "memory, GB", "of a device"), number("cluster.gpus_per_node", "devices a node", ""),
			number("cluster.node_bandwidth_gbs", "inside a node, GB/s", "of a device in one direction"), number("cluster.network_bandwidth_gbs", "between nodes, GB/s", "of a device in one direction"),
			number("cluster.hour_price", "price", "of a device and hour"),
		}},
	}
}

// values are the keys of a plan's configuration and its device's figures, as the fields show them.
func values(p *plan.Plan) map[string]string {
	v := p.Config.Values()
	d := p.Device
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	v["cluster.gpu"], v["cluster.memory_gb"], v["cluster.hour_price"] = d.Name, text(d.Memory/1e9), text(d.HourPrice)
	v["cluster.gpus_per_node"] = strconv.Itoa(d.Links[0].Span)
	v["cluster.node_bandwidth_gbs"], v["cluster.network_bandwidth_gbs"] = text(d.Links[0].Bandwidth/1e9), text(d.Links[len(d.Links)-1].Bandwidth/1e9)
	return v
}
