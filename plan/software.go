package plan

import (
	"regexp"
	"slices"
	"strings"

	"triax/configs"
	"triax/nn"
)

// software is how a framework of some year runs a layout: what it overlaps and fuses, in what precision it sums gradients.
type software struct {
	name    string
	sources []string // prefixes of row names that it made
	apply   func(*configs.Config, *Cluster, fields)
}

// megatron2021 is a program whose constants are asIn2021's.
const megatron2021 = "megatron-2021"

// programs are the frameworks that published rows were made with. Their settings are what their documentation says, not what fits a row.
var programs = []software{
	// Megatron-LM and Megatron-DeepSpeed of 2020 to 2022: attention keeps its scores, nothing overlaps.
	{megatron2021, []string{"sc21", "kort", "mtnlg", "megascale", "mlm20", "neox", "opt"}, func(c *configs.Config, k *Cluster, f fields) {
		*k = asIn2021(*k)
		c.Mesh.SequenceParallel = f["sp"] == "1"
		k.CoreAgain = f["recompute"] == "selective"
		if k.CoreAgain {
			c.Model.Recompute = "none"
		}
		if c.Zero.Stage == 3 {
			// DeepSpeed of 2021 gathers every parameter by itself, three times a step, in NCCL's simple protocol; gradients travel at 2 bytes.
			k.Pieces, k.Regather, k.GradientBytes = 12, true, 2
			k.Links = slices.Clone(k.Links)
			for i := range k.Links {
				k.Links[i].Quick = nil
			}
		}
	}},
	// Megatron-DeepSpeed of 2022: the same, with ZeRO-1 and gradients summed as they are kept.
	{"megatron-deepspeed", []string{"bloom"}, func(c *configs.Config, k *Cluster, f fields) {
		*k = asIn2021(*k)
		c.Mesh.SequenceParallel = false
		if f["precision"] == "fp16" {
			k.GradientBytes = 2
		}
	}},
	// Megatron-Core with Transformer Engine: tiled attention, sharded optimizer whose sums and gathers overlap, communication of tensor ranks beside products.
	{"megatron-core", []string{"dgxc", "mbridge", "mbcard", "mbtune", "nemodoc", "nemolong", "mcore", "nem415", "nem4340", "nemo23"}, func(c *configs.Config, k *Cluster, _ fields) {
		c.Model.Dropout = 0
		if c.Zero.Stage == 0 && c.Mesh.DP > 1 {
			c.Zero.Stage = 1
		}
		c.Zero.Overlap, k.GatherAhead = true, true
		c.Mesh.TPOverlap = c.Mesh.TP > 1
	}},
	// Its functional tests: deterministic kernels, nothing overlaps.
	{"megatron-core-tests", []string{"mlmci"}, func(c *configs.Config, _ *Cluster, _ fields) {}},
	// Fully sharded data parallelism of PyTorch: gathers ahead of use, reductions beside backward. Composer of 2023 with FlashAttention 1.
	{"composer", []string{"foundry"}, func(c *configs.Config, k *Cluster, f fields) {
		fsdp(c)
		if strings.Contains(f["notes"], "PURE") && !strings.Contains(f["notes"], "mode DEFAULT") {
			k.GradientBytes = 2
		}
	}},
	// The same in torchtitan and its kin: selective recomputation repeats every other operation or layer, not the attention alone.
	{"torchtitan", []string{"titan", "fms", "tinyllama", "automodel"}, func(c *configs.Config, k *Cluster, f fields) {
		fsdp(c)
		if f["recompute"] == "selective" {
			c.Model.Recompute, c.Model.RecomputeLayers = nn.RecomputeFull, c.Model.Layers/2
		}
		c.Mesh.TPOverlap = strings.Contains(f["notes"], "async TP")
	}},
}

// fsdp is how PyTorch shards fully.
func fsdp(c *configs.Config) { c.Model.Dropout, c.Zero.Overlap = 0, true }

func softwareOf(source string, f fields) (software, bool) {
	if regexp.MustCompile(`MaxText|Paxml`).MatchString(f["model_name"]) { // what they make again is not said
		return software{}, false
	}
	if source == "nanotron" { // what it makes again is not said
		return software{}, false
	}
	named := f["program"]
	i := slices.IndexFunc(programs, func(s software) bool { return s.name == named || named == "" && slices.Contains(s.sources, source) })
	if i >= 0 {
		return programs[i], true
	}
	return software{"unnamed", nil, func(*configs.Config, *Cluster, fields) {}}, named == ""
}

// asIn2021 is an A100 under the software of 2021 and 2022: attention keeps its scores, gradients of data parallelism are fp32.
func asIn2021(c Cluster) Cluster {
	c.ScorePasses, c.AttentionRate, c.Efficiency, c.Depth, c.Host, c.GradientBytes = 5.8, 0.39, 0.83, 200, 60*us, 2
	c.Fused, c.LooseLoss = true, true
	return c
}

// rates are what a program reaches on a device: constants that rows of that device and program were fitted for. Zero leaves the preset's.
type rates struct {
	software, devices                                              string // devices is a regular expression
	efficiency, efficiency8, attention, stream, host, tensorHidden float64
}

var fitted = []rates{
	{software: "megatron-core", devices: "h100.*|h200|h800", efficiency: 0.66, attention: 0.372, stream: 0.95, tensorHidden: 0.66},
	{software: "megatron-core", devices: "b200", efficiency: 0.55, efficiency8: 0.5, attention: 0.6},
	{software: "megatron-core", devices: "gb200-nvl72", efficiency: 0.5, efficiency8: 0.45, attention: 0.6},
	{software: "megatron-core", devices: "b300|gb300-nvl72", efficiency: 0.55, efficiency8: 0.65, attention: 0.6},
	{software: "megatron-core without overlap", devices: "b200", efficiency: 0.43, attention: 0.45},
	{software: "composer", devices: "h100.*|h200|h800", efficiency: 0.6, efficiency8: 0.477, attention: 0.171, host: 80 * us},
	{software: "composer", devices: "a100.*", efficiency: 0.72, attention: 0.3, host: 80 * us},
	{software: "megatron-deepspeed", devices: "a100.*", efficiency: 0.7, attention: 0.6, stream: 0.5, host: 80 * us},
	{software: "torchtitan", devices: "h100.*|h200", efficiency: 0.45, efficiency8: 0.5, attention: 0.2, stream: 0.9, host: 80 * us},
	{software: "torchtitan", devices: "a100.*", efficiency: 0.64},
}

// on tells whether these were measured on a device.
func (r rates) on(device string) bool {
	return regexp.MustCompile("^(" + r.devices + ")$").MatchString(device)
}

// ratesOf sets what a program reaches on a cluster's device.
func ratesOf(software string, c *Cluster) {
	for _, r := range fitted {
		if r.software != software || !r.on(c.Name) {
			continue
		}
		for _, x := range []struct {
			to *float64
			v  float64
		}{{&c.Efficiency, r.efficiency}, {&c.Efficiency8, r.efficiency8}, {&c.AttentionRate, r.attention}, {&c.Stream, r.stream}, {&c.Host, r.host}, {&c.TensorHidden, r.tensorHidden}} {
			if x.v > 0 {
				*x.to = x.v
			}
		}
	}
}
