package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"triax/configs"
	"triax/nn"
)

// published is a row of a table of published runs (id, gpu_type, layers, hidden, tp, pp, ...). Used are dense models whose layout, batch and time
// are all said.
func published(f fields) (*Measured, string) {
	source, _, _ := strings.Cut(f["id"], "-")
	if strings.Contains(f["notes"], "ANALYTIC") {
		return nil, "not measured"
	}
	if regexp.MustCompile(`MoE|experts`).MatchString(f["notes"]) {
		return nil, "experts"
	}
	for _, word := range []string{"LoRA", "SFT"} {
		if strings.Contains(f["model_name"], word) {
			return nil, "fine-tuning: packed samples or frozen weights"
		}
	}
	need := []string{"gpus", "layers", "hidden", "heads", "seq_len", "vocab", "tp", "pp", "micro_batch", "global_batch"}
	for _, key := range need {
		if f.int(key) == 0 {
			return nil, "layout not complete: no " + key
		}
	}
	if f.int("pp") > 1 && f["schedule"] == "" && f["vp"] == "" {
		return nil, "layout not complete: pipeline without schedule"
	}
	if strings.Contains(f["notes"], "VP column says NA") {
		return nil, "layout not complete: interleaving not said"
	}
	if source == "bloom" && f.int("heads") != 64 && f.int("heads") != 112 {
		return nil, "head size off the fast kernels of its time"
	}
	soft, ok := softwareOf(source, f)
	if !ok {
		return nil, "software not known"
	}
	cluster, why := deviceOf(f)
	if why != "" {
		return nil, why
	}
	cfg := layoutOfRow(f)
	soft.apply(cfg, &cluster, f)
	ratesOf(soft.name, &cluster)
	seconds := secondsOf(f)
	if seconds == 0 {
		return nil, "no time"
	}
	return &Measured{
		ID: f["id"], Source: source, Program: soft.name, Config: cfg, Cluster: cluster, Seconds: seconds, Peak: f.float("mem_gb_per_gpu") * giga,
		Untimed: strings.Contains(f["notes"], "deterministic mode"),
		Group:   fmt.Sprint(f["gpu_type"], f["precision"], f["gpus"], f["global_batch"], f["layers"], f["hidden"], f["heads"], f["seq_len"]),
	}, ""
}

// layoutOfRow is the model and the cut of a row.
func layoutOfRow(f fields) *configs.Config {
	model := gpt(f.int("layers"), f.int("hidden"), f.int("heads"), f.int("vocab"), f.int("seq_len"))
	model.KVHeads, model.Hidden = f.int("kv_heads"), f.int("ffn_hidden")
	if regexp.MustCompile(`(?i)llama|mistral|qwen|falcon`).MatchString(f["model_name"]) {
		model.Family, model.Dropout = nn.Llama, 0
		model.Tied = false
	}
	tp, pp, cp := f.int("tp"), f.int("pp"), max(1, f.int("cp"))
	dp := f.int("gpus") / max(1, tp*pp*cp)
	c := layOut(model, tp, pp, dp, f.int("micro_batch"), f.int("global_batch"))
	c.Mesh.CP = cp
	c.Mesh.SequenceParallel = tp > 1 && f["sp"] != "0"
	if v := f.int("vp"); v > 1 && pp > 1 {
		c.Pipeline.Schedule, c.Pipeline.Chunks = "interleaved", v
	}
	if s := (map[string]string{"zb-1p": "zb-h1", "zb-2p": "zb-h2", "zb-h1": "zb-h1", "zb-h2": "zb-h2", "zbv": "zb-v", "gpipe": "gpipe"})[f["schedule"]]; s != "" {
		c.Pipeline.Schedule = s
	}
	for _, m := range nn.RecomputeModes {
		if f["recompute"] == m {
			c.Model.Recompute = m
		}
	}
	c.Zero.Stage = zeroStage(f["zero_stage_or_sharding"])
	if x := regexp.MustCompile(`(\d+)-way x DP (\d+)`).FindStringSubmatch(f["zero_stage_or_sharding"]); x != nil {
		if n, _ := strconv.Atoi(x[2]); n > 1 && c.Mesh.DP%n == 0 {
			c.Mesh.DP, c.Mesh.Replicate = c.Mesh.DP/n, n
		}
	}
	return c
}

// zeroStage reads how data ranks share states.
func zeroStage(said string) int {
	s := strings.ToLower(said)
	switch {
	case strings.Contains(s, "zero2") || strings.Contains(s, "grad_op"):
		return 2
	case strings.Contains(s, "zero3") || strings.Contains(s, "fsdp"):
		return 3
	case strings.Contains(s, "zero1") || strings.Contains(s, "distributed optimizer"):
		return 1
	}
	return 0
}

// secondsOf is the time of a step, from whichever figure a row has. TFLOP/s are read as Narayanan et al. 2021, §5.1, equation 3 counts them,
// and only of their rows: other sources count otherwise.
func secondsOf(f fields) float64 {
	if t := f.float("step_time_s"); t > 0 {
		return t
	}
	batch, seq, gpus := f.float("global_batch"), f.float("seq_len"), f.float("gpus")
	if rate := f.float("tokens_per_s_per_gpu"); rate > 0 {
		return batch * seq / (rate * gpus)
	}
	if rate := f.float("tflops_per_gpu"); rate > 0 && strings.HasPrefix(f["id"], "sc21-") {
		l, h, v := f.float("layers"), f.float("hidden"), f.float("vocab")
		return 96 * batch * seq * l * h * h * (1 + seq/(6*h) + v/(16*l)/h) / (rate * tera * gpus)
	}
	return 0
}

// devices names presets by what tables call them.
var devices = map[string]string{
	"A100-80GB": "a100-80", "A100-40GB": "a100-40", "A100": "a100-80", "A800-80GB": "a800", "H100-80GB": "h100-sxm", "H100-96GB-HBM2e-500W": "h100-96", "H200-141GB": "h200",
	"H800-80GB": "h800", "B200": "b200", "B300": "b300", "GB200": "gb200-nvl72", "GB300": "gb300-nvl72", "MI300X-192GB": "mi300x", "MI325X-256GB": "mi325x",
}

var (
	perNode = regexp.MustCompile(`(\d+) x (?:\w+ )?(\d+) ?Gb?`)
	perLink = regexp.MustCompile(`(\d+) (?:InfiniBand|Omni-Path|RoCE|IB)[^,;(]*?(\d+) ?G`)
	inAll   = regexp.MustCompile(`(\d+) Gb/s \w+ per node`)
	perGPU  = regexp.MustCompile(`(\d+) Gb/s[^,;]* per GPU`)
)

// deviceOf is the cluster of a row: a preset, and the network that the row speaks of.
func deviceOf(f fields) (Cluster, string) {
	c, err := Preset(devices[f["gpu_type"]])
	if err != nil {
		return c, "device " + f["gpu_type"] + " not known"
	}
	c.Links = slices.Clone(c.Links)
	per := f.float("gpus_per_node")
	if per > 0 && c.Links[0].Span <= 8 {
		c.Links[0].Span = int(per)
	}
	text := strings.ReplaceAll(f["interconnect"], "Gb/s HDR", "Gb/s")
	number := func(s string) float64 { x, _ := strconv.ParseFloat(s, 64); return x * giga / 8 }
	if x := perGPU.FindStringSubmatch(text); x != nil {
		c.last().Bandwidth = number(x[1])
	} else if x := cmpFirst(perNode.FindStringSubmatch(text), perLink.FindStringSubmatch(text)); x != nil && per > 0 {
		n, _ := strconv.ParseFloat(x[1], 64)
		c.last().Bandwidth = n * number(x[2]) / per
	} else if x := inAll.FindStringSubmatch(text); x != nil && per > 0 {
		c.last().Bandwidth = number(x[1]) / per
	}
	switch f["precision"] {
	case "", "bf16", "fp16":
	case "fp8", "mxfp8":
		c.Float8 = true
	default:
		return c, "precision " + f["precision"] + " not covered"
	}
	return c, ""
}

func cmpFirst(a, b []string) []string {
	if a != nil {
		return a
	}
	return b
}
