package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Cluster is what a plan is priced on: one kind of device, and the links that join them, innermost first.
type Cluster struct {
	Name      string  `json:"name"`
	Precision string  `json:"precision"` // "fp32" or "bf16": of weights and activations
	Peak      float64 `json:"peak"`      // FLOP/s at that precision, dense
	// Float8 runs the products of blocks in 8-bit floats, at twice the rate and with a cast before each; embedding, norms, scores and logits stay.
	Float8      bool    `json:"float8,omitempty"`
	Efficiency8 float64 `json:"efficiency8,omitempty"` // share of twice the peak that large products then reach
	Memory      float64 `json:"memory"`                // bytes a device
	Bandwidth   float64 `json:"bandwidth"`             // bytes/s of device memory
	// Cores is how many ranks can compute at the same time; 0 means all. More ranks share them.
	Cores int `json:"cores,omitempty"`
	Units int `json:"units"` // processors that share out a matrix product's tiles (SMs, cores)
	// Efficiency is the share of Peak that large products reach; Depth the inner dimension at which half of it is reached.
	Efficiency    float64 `json:"efficiency"`
	Depth         float64 `json:"depth"`
	AttentionRate float64 `json:"attention_efficiency"` // share of Peak that tiled attention reaches
	// ScorePasses is how often attention that keeps its scores reads and writes them in a forward pass; 0 is tiled attention, which does not.
	ScorePasses float64 `json:"score_passes"`
	// CoreAgain makes backward repeat the heads' forward: the selective recomputation of Korthikanti et al. 2022, §5.
	CoreAgain bool    `json:"core_again"`
	Stream    float64 `json:"stream_efficiency"` // share of Bandwidth that passes over memory reach
	Launch    float64 `json:"launch"`            // seconds a kernel costs beside its work
	// Host is the seconds that the program takes to issue one kernel or call: work goes on beside the kernels, but small kernels wait for it.
	Host  float64 `json:"host"`
	Fused bool    `json:"fused"` // biases and dropout ride on other kernels
	// LooseLoss is a loss that widens logits to 4 bytes and passes over them operation by operation.
	LooseLoss bool `json:"loose_loss,omitempty"`
	// Pieces is into how many calls ZeRO-3's gather or reduction of a layer falls apart: 1 for flat buckets, one a parameter where
	// each is gathered by itself.
	Pieces int `json:"pieces"`
	// Regather is software that frees a layer's parameters between making its activations again and its backward, and gathers them once more.
	Regather bool `json:"regather,omitempty"`
	// TensorHidden is the share of the tensor axis' communication that software which cuts products into parts hides behind them, with mesh.tp_overlap.
	TensorHidden float64 `json:"tensor_hidden,omitempty"`
	// GatherAhead gathers the parameters that a sharded optimizer updated under the next step's first forward passes.
	GatherAhead bool   `json:"gather_ahead,omitempty"`
	Links       []Link `json:"links"`
	// Runtime is whose memory a plan counts: this program's ("") or MegatronCore's.
	Runtime string `json:"runtime,omitempty"`
	// GradientBytes is the size of an accumulated gradient element; StateBytes that of master copy and moments together.
	GradientBytes int     `json:"gradient_bytes"`
	StateBytes    int     `json:"state_bytes"`
	Slack         float64 `json:"slack"` // share of memory that the allocator and libraries take
	Disk          float64 `json:"disk"`  // bytes/s that a rank reads or writes of offloaded state
	HourPrice     float64 `json:"hour_price"`
	Watts         float64 `json:"watts"`
}

// Link joins Span consecutive ranks: a node, a rack; the last one joins all.
type Link struct {
	Name      string  `json:"name"`
	Span      int     `json:"span"`      // ranks inside; 0 for all
	Bandwidth float64 `json:"bandwidth"` // bytes/s of one device in one direction
	Latency   float64 `json:"latency"`   // seconds of one hop
	Base      float64 `json:"base"`      // seconds that a collective costs before its first byte
	// InSwitch is hardware that sums in the switch: an all-reduce inside this link sends and receives each byte once.
	InSwitch bool `json:"in_switch,omitempty"`
	// Quick are protocols that start sooner and carry less, quickest first.
	Quick []Protocol `json:"quick,omitempty"`
}

// Protocol is another way to run a ring: with its own start and hop, and a share of the bandwidth.
type Protocol struct {
	Share   float64 `json:"share"`
	Base    float64 `json:"base"`
	Latency float64 `json:"latency"`
}

// Constants of NCCL's ring protocols (its tuning table): for large messages "Simple", base 8.4 us, hops of 3.4 us over NVLink, 5.7 us over PCIe,
// 14 us over a network; for small ones LL and LL128, of half and of 92% of the bandwidth.
const (
	us         = 1e-6
	collective = 8.4 * us
)

func nvlink(bandwidth float64, span int) Link {
	return Link{Name: "nvlink", Span: span, Bandwidth: bandwidth, Latency: 3.4 * us, Base: collective, Quick: quick(0.6, 1.9)}
}

func network(bandwidth float64) Link {
	return Link{Name: "network", Bandwidth: bandwidth, Latency: 14 * us, Base: collective, Quick: quick(2.7, 4)}
}

func pcie(bandwidth float64) Link {
	return Link{Name: "pcie", Span: 8, Bandwidth: bandwidth, Latency: 5.7 * us, Base: collective, Quick: quick(1, 2.5)}
}

// quick are NCCL's LL and LL128 with these hops in microseconds.
func quick(ll, ll128 float64) []Protocol {
	return []Protocol{{0.5, 6.6 * us, ll * us}, {0.92, 14 * us, ll128 * us}}
}

func gpu(name string, peak, memory, bandwidth float64, units int, links ...Link) Cluster {
	return Cluster{
		Name: name, Precision: "bf16", Peak: peak, Memory: memory, Bandwidth: bandwidth, Units: units, Links: links,
		Efficiency: 0.82, Efficiency8: 0.6, TensorHidden: 0.7, Depth: 90, AttentionRate: 0.5, Stream: 0.8, Launch: 4.5 * us, Fused: true,
		GradientBytes: 4, StateBytes: 12, Slack: 0.06, Disk: 3 * giga,
	}
}

const (
	giga = 1e9
	tera = 1e12
	gib  = 1 << 30
)

// Presets are devices by their makers' data sheets: dense bf16 FLOP/s, memory, memory bandwidth, link bandwidth in one direction. Network
// bandwidth is that of the usual network card for each device: HDR 200 Gb/s, NDR 400 Gb/s.
func Presets() []Cluster {
	h100 := gpu("h100-sxm", 989.4*tera, 80*gib, 3.35*tera, 132, nvlink(450*giga, 8), network(50*giga))
	h100.Efficiency, h100.Watts = 0.72, 700
	h200 := gpu("h200", 989.4*tera, 141*giga, 4.8*tera, 132, nvlink(450*giga, 8), network(50*giga))
	h200.Efficiency, h200.Watts = 0.72, 700
	slow := gpu("h100-pcie", 756*tera, 80*gib, 2.0*tera, 114, pcie(50*giga), network(50*giga))
	slow.Efficiency, slow.Watts = 0.65, 350
	b200 := gpu("b200", 2250*tera, 180*giga, 8*tera, 148, nvlink(900*giga, 8), network(50*giga))
	b200.Efficiency, b200.Watts = 0.72, 1000
	gb200 := gpu("gb200-nvl72", 2500*tera, 186*giga, 8*tera, 152, nvlink(900*giga, 72), network(50*giga))
	gb200.Efficiency, gb200.Watts = 0.72, 1200
	b300, gb300 := b200, gb200
	b300.Name, b300.Peak, b300.Memory, b300.Units, b300.Watts = "b300", 2500*tera, 288*giga, 148, 1400
	gb300.Name, gb300.Peak, gb300.Memory = "gb300-nvl72", 2500*tera, 288*giga
	for _, c := range []*Cluster{&b300, &gb300} {
		c.Links = slices.Clone(c.Links)
		c.last().Bandwidth = 100 * giga
	}
	h800, narrow := h100, h100
	h800.Name, h800.Links = "h800", []Link{nvlink(200*giga, 8), network(50 * giga)}
	narrow.Name, narrow.Memory, narrow.Bandwidth, narrow.Watts = "h100-96", 96*gib, 2.4*tera, 500
	mi300x := gpu("mi300x", 1307*tera, 192*giga, 5.3*tera, 304, Link{Name: "xgmi", Span: 8, Bandwidth: 448 * giga, Latency: 3.4 * us, Base: collective}, network(50*giga))
	mi300x.Efficiency, mi300x.Watts = 0.55, 750
	mi325x := mi300x
	mi325x.Name, mi325x.Memory, mi325x.Bandwidth, mi325x.Watts = "mi325x", 256*giga, 6*tera, 1000
	rtx := gpu("rtx4090", 165*tera, 24*gib, 1.008*tera, 128, pcie(25*giga), network(12.5*giga))
	rtx.Watts = 450
	a40 := gpu("a100-40", 312*tera, 40*gib, 1.555*tera, 108, nvlink(300*giga, 8), network(25*giga))
	a80 := gpu("a100-80", 312*tera, 80*gib, 2.039*tera, 108, nvlink(300*giga, 8), network(25*giga))
	a40.Watts, a80.Watts = 400, 400
	a40.Efficiency8, a80.Efficiency8 = 0, 0 // its tensor cores have no 8-bit floats
	a800 := a80
	a800.Name, a800.Links = "a800", []Link{nvlink(200*giga, 8), network(25 * giga)}
	return []Cluster{a40, a80, a800, h100, narrow, slow, h800, h200, b200, b300, gb200, gb300, mi300x, mi325x, rtx, thisCPU()}
}

// thisCPU is a rank of a run on this machine: one core with AVX-512 (a 2-core virtual machine; triax bench measures another).
func thisCPU() Cluster {
	return Cluster{
		Name: "cpu", Precision: "fp32", Cores: 2, Peak: 240 * giga, Memory: 24 * gib, Bandwidth: 30 * giga, Units: 1,
		Efficiency: 0.9, Depth: 12, AttentionRate: 0.45, Stream: 0.7, Launch: 2 * us,
		GradientBytes: 4, StateBytes: 8, Disk: giga,
		Links: []Link{{Name: "memory", Bandwidth: 12 * giga, Latency: 2 * us, Base: 10 * us}},
	}
}

// Preset finds a device by name.
func Preset(name string) (Cluster, error) {
	all := Presets()
	i := slices.IndexFunc(all, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range all {
			names = append(names, c.Name)
		}
		return Cluster{}, fmt.Errorf("want one of %s", strings.Join(names, ", "))
	}
	return all[i], nil
}
