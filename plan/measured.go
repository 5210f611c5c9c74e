package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"triax/configs"
	"triax/nn"
)

// Measured is one run that somebody measured: its layout, and how long a step took.
type Measured struct {
	ID      string
	Source  string // rows of one source share a setting
	Group   string // runs of equal devices, batch and model: of these a planner has to choose
	Config  *configs.Config
	Cluster Cluster
	Seconds float64
}

// Skipped is a row that is not used, and why.
type Skipped struct{ ID, Why string }

// ReadMeasured reads a CSV of runs. It knows the columns of vTrain's data ("hidden size", "iteration time (ms)", ...) and of tables of published
// runs (id, gpu_type, layers, hidden, tp, pp, ...). Rows that lack what a plan needs are skipped and said so.
func ReadMeasured(r io.Reader) (rows []Measured, skipped []Skipped, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("first line: %w", err)
	}
	for n := 2; ; n++ {
		rec, err := in.Read()
		if err == io.EOF {
			return rows, skipped, nil
		}
		if err != nil {
			return nil, nil, err
		}
		f := fields{}
		for i, h := range head {
			if i < len(rec) {
				f[strings.TrimSpace(h)] = strings.TrimSpace(rec[i])
			}
		}
		var m *Measured
		var why string
		if _, ok := f["iteration time (ms)"]; ok {
			m, why = vtrain(f, n)
		} else {
			m, why = published(f)
		}
		if m == nil {
			skipped = append(skipped, Skipped{fmt.Sprintf("line %d %s", n, f["id"]), why})
			continue
		}
		if err := configs.Resolved(m.Config).Validate(); err != nil {
			skipped = append(skipped, Skipped{m.ID, err.Error()})
			continue
		}
		rows = append(rows, *m)
	}
}

// fields is one line by column.
type fields map[string]string

func (f fields) int(key string) int {
	x, err := strconv.ParseFloat(f[key], 64)
	if err != nil || x != math.Trunc(x) || x < 0 || x > 1<<40 {
		return 0
	}
	return int(x)
}

func (f fields) float(key string) float64 {
	x, err := strconv.ParseFloat(f[key], 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// gpt is a GPT of Megatron's shape.
func gpt(layers, width, heads, vocab, seq int) nn.Config {
	return nn.Config{Family: nn.GPT2, Layers: layers, Width: width, Heads: heads, Vocab: vocab, Sequence: seq, Tied: true, Recompute: nn.RecomputeNone, Dropout: 0.1}
}

// layOut fills in degrees and batch.
func layOut(model nn.Config, tp, pp, dp, micro, batch int) *configs.Config {
	c := configs.Default()
	c.Model = model
	c.Mesh.TP, c.Mesh.PP, c.Mesh.DP = tp, pp, dp
	c.Train.Batch = batch
	c.Pipeline.Microbatches = batch / max(1, dp*micro)
	return c
}

// oldA100 is an A100 under the software of 2021 and 2022: attention keeps its scores, gradients of data parallelism are fp32.
func oldA100() Cluster {
	c, err := Preset("a100-80")
	if err != nil {
		panic(err)
	}
	c.ScorePasses, c.AttentionRate, c.Efficiency, c.Depth, c.Host = 5, 0.45, 0.81, 130, 47*us
	return c
}

// vtrain is a row of VIA-Research/vTrain's data: Megatron, 1F1B, full recomputation, no sharding; four HDR links for eight A100s.
func vtrain(f fields, line int) (*Measured, string) {
	c := oldA100()
	c.last().Bandwidth = 12.5 * giga
	model := gpt(f.int("# layers"), f.int("hidden size"), f.int("attention heads"), 51200, f.int("sequence length"))
	model.Recompute = nn.RecomputeFull
	tp, pp, dp := f.int("tensor parallelism"), f.int("pipeline parallelism"), f.int("data parallelism")
	m := &Measured{
		ID: fmt.Sprintf("line %d", line), Source: "vtrain multi-node", Cluster: c, Seconds: f.float("iteration time (ms)") / 1e3,
		Config: layOut(model, tp, pp, dp, f.int("micro batch"), f.int("global batch")),
		Group:  fmt.Sprint(f["# GPUs"], f["global batch"], f["hidden size"], f["# layers"], f["sequence length"]),
	}
	if f.int("# GPUs") <= 8 {
		m.Source = "vtrain single node"
	}
	if m.Seconds == 0 || model.Layers == 0 {
		return nil, "no time or no shape"
	}
	return m, ""
}

// published is a row of a table of published runs. Used are those of GPT models on A100s whose software is known to this package: Narayanan et al.
// 2021 and Korthikanti et al. 2022.
func published(f fields) (*Measured, string) {
	source, _, _ := strings.Cut(f["id"], "-")
	if source != "sc21" && source != "kort" {
		return nil, "source not covered"
	}
	layers, width, seq := f.int("layers"), f.int("hidden"), f.int("seq_len")
	tp, pp, dp, micro, batch := f.int("tp"), f.int("pp"), f.int("dp"), f.int("micro_batch"), f.int("global_batch")
	if slices.Contains([]int{layers, width, seq, tp, pp, dp, micro, batch, f.int("vocab")}, 0) {
		return nil, "layout not complete"
	}
	model := gpt(layers, width, f.int("heads"), f.int("vocab"), seq)
	cluster := oldA100()
	switch f["recompute"] {
	case "full":
		model.Recompute = nn.RecomputeFull
	case "selective":
		cluster.CoreAgain = true
	}
	cfg := layOut(model, tp, pp, dp, micro, batch)
	cfg.Mesh.SequenceParallel = f["sp"] == "1"
	if v := f.int("vp"); v > 1 && strings.HasPrefix(f["schedule"], "interleaved") {
		cfg.Pipeline.Schedule, cfg.Pipeline.Chunks = "interleaved", v
	}
	if f["zero_stage_or_sharding"] == "zero3" {
		cfg.Zero.Stage, cluster.Pieces = 3, 12 // DeepSpeed of 2021 gathers every parameter by itself
	}
	t := f.float("step_time_s")
	if rate := f.float("tflops_per_gpu"); rate > 0 {
		// Narayanan et al. 2021, §5.1, equation 3: recomputation counted.
		l, h, s, v := float64(layers), float64(width), float64(seq), f.float("vocab")
		flops := 96 * float64(batch) * s * l * h * h * (1 + s/(6*h) + v/(16*l*h))
		t = flops / (rate * tera * float64(tp*pp*dp))
	}
	if t == 0 {
		return nil, "no time"
	}
	return &Measured{ID: f["id"], Source: source, Config: cfg, Cluster: cluster, Seconds: t,
		Group: fmt.Sprint(tp*pp*dp, batch, layers, width)}, ""
}
