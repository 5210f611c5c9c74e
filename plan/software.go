package plan

import (
	"regexp"
	"slices"
	"strings"

	"triax/configs"
)

// software is how a framework of some year runs a layout: what it overlaps and fuses, in what precision it sums gradients.
type software struct {
	name    string
	sources []string // prefixes of row names that it made
	apply   func(*configs.Config, *Cluster, fields)
}

// programs are the frameworks that published rows were made with. Their settings are what their documentation says, not what fits a row.
var programs = []software{
	// Megatron-LM and Megatron-DeepSpeed of 2020 to 2022: attention keeps its scores, nothing overlaps.
	{"megatron-2021", []string{"sc21", "kort", "bloom", "mtnlg", "megascale", "mlm20", "neox", "opt"}, func(c *configs.Config, k *Cluster, f fields) {
		*k = asIn2021(*k)
		c.Mesh.SequenceParallel = f["sp"] == "1"
		k.CoreAgain = f["recompute"] == "selective"
		if k.CoreAgain {
			c.Model.Recompute = "none"
		}
		if c.Zero.Stage == 3 {
			k.Pieces = 12 // DeepSpeed of 2021 gathers every parameter by itself
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
	// Fully sharded data parallelism of PyTorch: gathers ahead of use, reductions beside backward.
	{"fsdp", []string{"foundry", "titan", "fms", "pax", "tinyllama", "automodel"}, func(c *configs.Config, k *Cluster, f fields) {
		c.Model.Dropout = 0
		c.Zero.Overlap = true
		if strings.Contains(f["notes"], "PURE") && !strings.Contains(f["notes"], "mode DEFAULT") {
			k.GradientBytes = 2
		}
	}},
}

func softwareOf(source string, f fields) (software, bool) {
	if regexp.MustCompile(`MaxText|Paxml`).MatchString(f["model_name"]) { // what they make again is not said
		return software{}, false
	}
	i := slices.IndexFunc(programs, func(s software) bool { return slices.Contains(s.sources, source) })
	if i < 0 {
		return software{}, false
	}
	return programs[i], true
}

// asIn2021 is an A100 under the software of 2021 and 2022: attention keeps its scores, gradients of data parallelism are fp32.
func asIn2021(c Cluster) Cluster {
	c.ScorePasses, c.AttentionRate, c.Efficiency, c.Depth, c.Host = 5, 0.45, 0.81, 130, 47*us
	return c
}
