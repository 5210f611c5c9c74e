package configs

import (
	"fmt"
	"strings"

	"triax/data"
	"triax/mesh"
	"triax/nn"
	"triax/optim"
	"triax/schedule"
	"triax/zero"
)

// Upper bounds keep products of sizes far from overflow; no machine reaches them.
const (
	maxCount  = 1 << 20
	maxWidth  = 1 << 20
	maxSteps  = 1 << 40
	maxMemory = 1 << 34
)

// whole asks that a whole number lies between two bounds.
func (ps *Problems) whole(field string, v, lo, hi int) {
	ps.add(v < lo || v > hi, field, v, fmt.Sprintf("want %d to %d", lo, hi), fmt.Sprintf("use %d", min(max(v, lo), hi)))
}

// number asks that lo <= v < hi; a NaN never is.
func (ps *Problems) number(field string, v, lo, hi float64, hint string) {
	ps.add(!(v >= lo && v < hi), field, v, fmt.Sprintf("want at least %g and below %g", lo, hi), hint)
}

// oneOf asks that a name is one of a list.
func (ps *Problems) oneOf(field, v string, list []string) {
	for _, x := range list {
		if x == v {
			return
		}
	}
	ps.add(true, field, v, "want one of "+strings.Join(list, ", "), fmt.Sprintf("use %q", nearest(v, list)))
}

func (c *Config) checkModel() (ps Problems) {
	m := c.Model
	ps.oneOf("model.family", string(m.Family), []string{string(nn.GPT2), string(nn.Llama)})
	ps.whole("model.layers", m.Layers, 1, maxCount)
	ps.whole("model.width", m.Width, 1, maxWidth)
	ps.whole("model.heads", m.Heads, 1, maxCount)
	ps.whole("model.kv_heads", m.KVHeads, 0, maxCount)
	ps.whole("model.head_dim", m.HeadDim, 0, maxWidth)
	ps.whole("model.hidden", m.Hidden, 0, maxWidth)
	ps.whole("model.vocab", m.Vocab, 0, 1<<24)
	ps.whole("model.sequence", m.Sequence, 1, 1<<24)
	ps.whole("model.positions", m.Positions, 0, 1<<24)
	ps.add(m.Family == nn.GPT2 && m.Positions > 0 && m.Positions < m.Sequence, "model.sequence", m.Sequence, fmt.Sprintf("the model has positions for %d tokens (model.positions)", m.Positions),
		fmt.Sprintf("use %d", m.Positions))
	ps.number("model.eps", m.Eps, 0, 1, "1e-5 is usual")
	ps.number("model.rope_base", m.RopeBase, 0, 1e12, "10000 is usual")
	ps.number("model.init_std", m.InitStd, 0, 100, "0.02 is usual")
	ps.number("model.dropout", m.Dropout, 0, 1, "0.1 is usual, 0 turns it off")
	ps.oneOf("model.recompute", m.Recompute, nn.RecomputeModes)
	ps.whole("model.experts", m.Experts, 0, maxCount)
	ps.whole("model.top_k", m.TopK, 0, maxCount)
	ps.number("model.capacity_factor", m.CapacityFactor, 0, 1e6, "1.25 is usual, 0 drops no token")
	ps.number("model.aux_loss", m.AuxLoss, 0, 1e6, "0.01 is usual, 0 turns it off")
	ps = append(ps, checkLoRA(m)...)
	ps.whole("model.recompute_layers", m.RecomputeLayers, 0, maxCount)
	for _, f := range []struct {
		name string
		on   bool
	}{{"model.qkv_bias", m.QKVBias}, {"model.qk_norm", m.QKNorm}} {
		ps.add(f.on && m.Family == nn.GPT2, f.name, f.on, "it is of the llama family", "use false: gpt2 has biases everywhere and no norm of heads")
	}
	if len(ps) > 0 {
		return ps
	}
	if x := m.Resolved().CheckRope(); x != nil {
		ps.add(true, x.Field, x.Value, x.Rule, x.Hint)
	}
	heads, kv := m.Heads, m.KVHeads
	if m.HeadDim == 0 {
		ps.add(m.Width%heads != 0, "model.heads", heads, fmt.Sprintf("width %d is not a multiple of heads", m.Width),
			"use "+either(divisorsNear(m.Width, heads))+", or set model.head_dim")
	}
	if kv > 0 {
		ps.add(heads%kv != 0, "model.kv_heads", kv, fmt.Sprintf("heads %d is not a multiple of kv_heads", heads), "use "+either(divisorsNear(heads, kv)))
	}
	if m.Family == nn.Llama && len(ps) == 0 {
		dim := headDim(m)
		ps.add(dim%2 != 0, "model.head_dim", dim, "rotary positions turn pairs: a head's size is even", fmt.Sprintf("use %d", dim+1))
	}
	return ps
}

// checkLoRA: adapters are beside matrices that the model has.
func checkLoRA(m nn.Config) (ps Problems) {
	ps.whole("model.lora_rank", m.LoRARank, 0, maxWidth)
	ps.number("model.lora_alpha", m.LoRAAlpha, 0, 1e6, "twice the rank is usual")
	ps.add(m.LoRARank == 0 && (m.LoRAAlpha != 0 || len(m.LoRATargets) > 0), "model.lora_rank", 0, "lora_alpha and lora_targets are for adapters of a rank", "use 8")
	for _, t := range m.LoRATargets {
		ps.oneOf("model.lora_targets", t, nn.LoRATargets)
		ps.add(t == "gate" && m.Family != nn.Llama, "model.lora_targets", t, "only the llama family has a gate", `use "up"`)
		ps.add((t == "gate" || t == "up" || t == "down") && m.Experts > 0, "model.lora_targets", t, "experts have no adapters", `use "q", "k", "v" or "out"`)
	}
	return ps
}

func headDim(m nn.Config) int {
	if m.HeadDim > 0 {
		return m.HeadDim
	}
	return m.Width / m.Heads
}

func (c *Config) checkData() (ps Problems) {
	d := c.Data
	ps.oneOf("data.format", d.Format, data.Formats)
	if d.Documents != "" {
		ps.oneOf("data.documents", d.Documents, data.Borders)
	}
	ps.oneOf("data.long", d.Long, data.Longs)
	ps.add(d.Format == data.JSONL && len(d.Source) == 0, "data.source", d.Source, "the default source is text, not examples", `name files of them: ["examples.jsonl"]`)
	if data.IsFile(d.Tokenizer) {
		_, err := data.NewTokenizer(d.Tokenizer)
		ps.add(err != nil, "data.tokenizer", d.Tokenizer, fmt.Sprint(err), "name a tokenizer.json, or a folder with one")
	} else {
		ps.oneOf("data.tokenizer", d.Tokenizer, data.Tokenizers)
	}
	ps.number("data.held_out", d.HeldOut, 0, 1, "0.02 keeps one token in fifty")
	ps.oneOf("data.last_batch", d.LastBatch, data.LastBatches)
	ps.whole("data.max_tokens", d.MaxTokens, 0, maxMemory)
	for _, s := range d.Source {
		ps.add(s == "", "data.source", s, "a source is a file, a directory or a glob", "leave the list empty for the Go standard library")
	}
	return ps
}

func (c *Config) checkMesh() (ps Problems) {
	m := c.Mesh
	seen := map[string]bool{}
	for _, name := range m.Axes {
		_, err := mesh.ParseAxis(name)
		ps.add(err != nil, "mesh.axes", name, "an axis is one of pp, dp_replicate, dp, ep, cp, tp", `use ["pp", "dp", "tp"]`)
		ps.add(seen[name], "mesh.axes", name, "an axis stands once in the order", `use ["pp", "dp", "tp"]`)
		seen[name] = true
	}
	ps.whole("mesh.dp", m.DP, 1, maxCount)
	ps.whole("mesh.pp", m.PP, 1, maxCount)
	ps.whole("mesh.tp", m.TP, 1, maxCount)
	ps.whole("mesh.ep", m.EP, 1, maxCount)
	ps.whole("mesh.cp", m.CP, 1, maxCount)
	ps.whole("mesh.dp_replicate", m.Replicate, 1, maxCount)
	if len(ps) == 0 {
		ranks := float64(m.DP) * float64(m.PP) * float64(m.TP) * float64(m.EP) * float64(m.CP) * float64(m.Replicate)
		ps.add(ranks > maxCount, "mesh", ranks, fmt.Sprintf("a run has at most %d ranks", maxCount), "lower a degree")
	}
	return ps
}

func (c *Config) checkPipeline() (ps Problems) {
	p := c.Pipeline
	if p.File == "" {
		ps.oneOf("pipeline.schedule", p.Schedule, schedule.Names())
	}
	ps.whole("pipeline.microbatches", p.Microbatches, 1, maxCount)
	ps.whole("pipeline.chunks", p.Chunks, 0, maxCount)
	ps.oneOf("pipeline.balance", p.Balance, []string{"even", "cost"})
	for _, n := range p.Layers {
		ps.add(n < 0 || n > maxCount, "pipeline.layers", n, "a stage has 0 layers or more", "leave the list empty to cut evenly")
	}
	return ps
}

func (c *Config) checkZero() (ps Problems) {
	z := c.Zero
	ps.whole("zero.stage", z.Stage, 0, 3)
	ps.whole("zero.bucket_elements", z.BucketElements, 0, maxMemory)
	ps.whole("zero.prefetch", z.Prefetch, 0, maxCount)
	ps.oneOf("zero.offload", z.Offload, zero.Offloads)
	ps.add(z.OffloadDir != "" && z.Offload != zero.OffloadDisk, "zero.offload_dir", z.OffloadDir, "nothing is offloaded", `use zero.offload = "disk"`)
	return ps
}

func (c *Config) checkOptim() (ps Problems) {
	o := c.Optim
	ps.oneOf("optim.rule", o.Rule, optim.Rules)
	ps.oneOf("optim.curve", o.Curve, optim.Curves)
	ps.add(!(o.LR > 0 && o.LR <= 1000), "optim.lr", o.LR, "want above 0 and at most 1000", "3e-4 suits AdamW")
	lr := o.LR
	if len(ps) > 0 { // the two rules that need a rate judge by the default one
		lr = optim.Default().LR
	}
	ps.add(!(o.MinLR >= 0 && o.MinLR <= lr), "optim.min_lr", o.MinLR, "want at least 0 and at most optim.lr", fmt.Sprintf("a tenth, %g, is usual", lr/10))
	ps.number("optim.eps", o.Eps, 0, 1, "1e-8 is usual")
	ps.add(!(o.WeightDecay >= 0 && o.WeightDecay*lr < 1), "optim.weight_decay", o.WeightDecay,
		"want at least 0, and below 1 when multiplied with optim.lr", "0.1 is usual")
	ps.number("optim.momentum", o.Momentum, 0, 1, "0.9 is usual")
	ps.number("optim.clip", o.Clip, 0, 1e12, "1 is usual, 0 turns clipping off")
	ps.whole("optim.warmup", o.Warmup, 0, maxSteps)
	ps.add(len(o.Betas) != 0 && len(o.Betas) != 2, "optim.betas", o.Betas, "AdamW has two decay rates", "[0.9, 0.95] is usual")
	for _, b := range o.Betas {
		ps.number("optim.betas", b, 0, 1, "[0.9, 0.95] is usual")
	}
	return ps
}

func (c *Config) checkTrain() (ps Problems) {
	t := c.Train
	ps.whole("train.steps", t.Steps, 1, maxSteps)
	ps.whole("train.batch", t.Batch, 1, maxCount)
	ps.whole("train.eval_every", t.EvalEvery, 0, maxSteps)
	ps.whole("train.eval_batches", t.EvalBatches, 0, maxCount)
	ps.whole("train.top_k", t.TopK, 0, 1<<24)
	ps.add(!(t.TopP > 0 && t.TopP <= 1), "train.top_p", t.TopP, "want above 0 and at most 1", "0.95 is usual, 1 takes all")
	ps.whole("train.sample_tokens", t.SampleTokens, 0, maxCount)
	ps.number("train.temperature", t.Temperature, 0, 1e6, "0.8 is usual, 0 takes the likeliest token")
	ps.whole("train.log_every", t.LogEvery, 0, maxSteps)
	ps.number("train.timeout", t.Timeout, 0, 1e7, "600 is usual, 0 turns it off")
	ps.oneOf("train.device", t.Device, []string{"float32", "float64", DeviceCUDA})
	ps.oneOf("train.precision", t.Precision, []string{PrecisionFull, PrecisionBF16})
	bf16 := t.Precision == PrecisionBF16
	ps.add(bf16 && t.Device == "float64", "train.precision", t.Precision, "float64 is the oracle that nothing is rounded for", `use train.device = "float32"`)
	ps.add(bf16 && c.CPU.Multiply == "bf16", "cpu.multiply", c.CPU.Multiply, `it rounds what is float32, and with train.precision = "bf16" nothing that is multiplied is`, `use "float"`)
	k := c.Checkpoint
	ps.whole("checkpoint.every", k.Every, 0, maxSteps)
	ps.number("checkpoint.minutes", k.Minutes, 0, 1e6, "30 is usual, 0 saves by steps only")
	ps.whole("checkpoint.keep", k.Keep, 0, maxCount)
	ps.whole("cpu.threads_per_rank", c.CPU.ThreadsPerRank, 0, 1024)
	ps.oneOf("cpu.multiply", c.CPU.Multiply, []string{"float", "bf16"})
	ps.add(c.CPU.Multiply == "bf16" && t.Device == "float64", "cpu.multiply", c.CPU.Multiply,
		"float64 is not rounded to bfloat16", `use train.device = "float32"`)
	if t.Device == DeviceCUDA {
		ps = append(ps, c.checkCUDA()...)
	}
	return ps
}

// checkCUDA: what only the processor does.
func (c *Config) checkCUDA() (ps Problems) {
	ps.add(c.CPU.Multiply == "bf16", "cpu.multiply", c.CPU.Multiply, `it is the processor's, and train.device = "cuda"`, `use "float", and train.precision = "bf16"`)
	ps.add(c.CPU.ThreadsPerRank != 0, "cpu.threads_per_rank", c.CPU.ThreadsPerRank, `it is the processor's, and train.device = "cuda"`, "use 0")
	ps.add(c.Zero.Offload == zero.OffloadDisk, "zero.offload", c.Zero.Offload, `optimizer state of train.device = "cuda" cannot be mapped from files`, fmt.Sprintf("use %q", zero.OffloadNone))
	if m := c.Model; m.From == "" && m.Heads > 0 {
		field, hint := "model.heads", fmt.Sprintf("use %d or more", (m.Width+MaxHeadCUDA-1)/MaxHeadCUDA)
		if m.HeadDim > 0 {
			field, hint = "model.head_dim", fmt.Sprintf("use %d", MaxHeadCUDA)
		}
		ps.add(headDim(m) > MaxHeadCUDA, field, headDim(m), fmt.Sprintf(`train.device = "cuda" has kernels for heads of up to %d`, MaxHeadCUDA), hint)
	}
	return ps
}
