package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"triax/configs"
	"triax/nn"
)

// Measured is one run that somebody measured: its layout, and how long a step took.
type Measured struct {
	ID      string
	Source  string // rows of one source share a setting
	Program string // what made it: rows of one program on one device share constants
	Group   string // runs of equal devices, batch and model: of these a planner has to choose
	Config  *configs.Config
	Cluster Cluster
	Seconds float64
	Peak    float64 // bytes of the fullest device; 0 where nobody says
	Untimed bool    // its time says nothing of speed: a test of reproducibility, with kernels chosen for that
}

// Skipped is a row that is not used, and why.
type Skipped struct{ ID, Why string }

// ReadMeasured reads a CSV of runs. It knows the columns of vTrain's data ("hidden size", "iteration time (ms)", ...), of SimuMax's ("case", "measured_ms", ...) and of tables of published
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
		} else if _, ok := f["measured_ms"]; ok {
			m, why = simumax(f)
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
	return asIn2021(c)
}

// vtrain is a row of VIA-Research/vTrain's data: Megatron, 1F1B, full recomputation, no sharding; four HDR links for eight A100s.
func vtrain(f fields, line int) (*Measured, string) {
	c := oldA100()
	c.last().Bandwidth = 12.5 * giga
	model := gpt(f.int("# layers"), f.int("hidden size"), f.int("attention heads"), 51200, f.int("sequence length"))
	model.Recompute = nn.RecomputeFull
	tp, pp, dp := f.int("tensor parallelism"), f.int("pipeline parallelism"), f.int("data parallelism")
	m := &Measured{
		ID: fmt.Sprintf("line %d", line), Source: "vtrain multi-node", Program: megatron2021, Cluster: c, Seconds: f.float("iteration time (ms)") / 1e3,
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
