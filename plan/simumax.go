package plan

import (
	"fmt"
	"regexp"
	"strconv"

	"triax/nn"
)

var caseWord = regexp.MustCompile(`_(tp|pp|dp|cp|ep|mbc|seq|mbs|l)(\d+)`)

// simumax is a row of SimuMax's measurements on one B200 node: a case named after its model and layout, and what a step took and held. Megatron-Core without any
// overlap: sharded optimizer, sequence parallelism, no recomputation, sequences of 4,096 in microbatches of one.
func simumax(f fields) (*Measured, string) {
	name := f["case"]
	said := map[string]int{"tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "seq": 4096, "mbs": 1}
	for _, w := range caseWord.FindAllStringSubmatch(name, -1) {
		said[w[1]], _ = strconv.Atoi(w[2])
	}
	model := nn.Config{Family: nn.Llama, Layers: said["l"], KVHeads: 8, Vocab: 128256, Sequence: said["seq"], Recompute: nn.RecomputeNone}
	switch {
	case regexp.MustCompile(`^llama3_70b_`).MatchString(name):
		model.Width, model.Heads, model.Hidden = 8192, 64, 28672
	case regexp.MustCompile(`^llama3_405b_`).MatchString(name):
		model.Width, model.Heads, model.Hidden = 16384, 128, 53248
	default:
		return nil, "experts, or a model that is not known"
	}
	if said["l"] == 0 || said["mbc"] == 0 {
		return nil, "layout not complete: no layers or no microbatches"
	}
	c, err := Preset("b200")
	if err != nil {
		return nil, err.Error()
	}
	c.Runtime = MegatronCore
	ratesOf("megatron-core without overlap", &c)
	cfg := layOut(model, said["tp"], said["pp"], said["dp"], said["mbs"], said["dp"]*said["mbs"]*said["mbc"])
	cfg.Mesh.CP, cfg.Mesh.SequenceParallel = said["cp"], said["tp"] > 1
	cfg.Zero.Stage = 1
	return &Measured{
		ID: name, Source: "simumax", Program: "megatron-core without overlap", Cluster: c, Config: cfg, Seconds: f.float("measured_ms") / 1e3, Peak: f.float("measured_peak_alloc_gib") * gib,
		Group: fmt.Sprint(model.Width, model.Layers, said["seq"], cfg.Train.Batch),
	}, ""
}
