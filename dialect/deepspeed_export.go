package dialect

import (
	"encoding/json"
	"fmt"
)

// deepspeed writes a DeepSpeed configuration. The model and its pipeline module stay the user's code.
func (w *writer) deepspeed() string {
	c, m, z, o := w.c, w.c.Mesh, w.c.Zero, w.c.Optim
	w.refuse(m.CP > 1, "mesh.cp", m.CP, "DeepSpeed swaps heads for tokens (Ulysses) where ring attention is asked for", "use 1")
	w.refuse(m.EP > 1, "mesh.ep", m.EP, "expert ranks are given in the model's code there", "use 1")
	w.refuse(m.SequenceParallel && m.TP > 1, "mesh.sequence_parallel", true, "tokens are not shared out between tensor-parallel layers there", "use false")
	if m.PP > 1 {
		w.refuse(c.Pipeline.Schedule != "1f1b" || c.Pipeline.File != "", "pipeline.schedule", c.Pipeline.Schedule, "DeepSpeed's pipeline runs 1f1b", `use "1f1b"`)
		w.refuse(len(c.Pipeline.Layers) > 0 && !even(c.Pipeline.Layers), "pipeline.layers", c.Pipeline.Layers, "which stage has which layers is said in PipelineModule's partition_method, not in this file", "leave it out")
		w.refuse(z.Stage > 1, "zero.stage", z.Stage, "DeepSpeed's pipeline runs ZeRO 0 and 1 only", "use 1, or mesh.pp = 1")
	}
	w.refuse(m.Replicate > 1 && z.Stage != 3, "mesh.dp_replicate", m.Replicate, "shards repeat over groups (MiCS) at ZeRO stage 3 only there", "use zero.stage = 3, or mesh.dp_replicate = 1")
	w.refuse(z.KeepAfterForward && z.Stage == 3, "zero.keep_after_forward", true, "parameters are freed after the forward there", "use false")
	micro := w.micro()
	share := map[string]any{"stage": z.Stage, "overlap_comm": z.Overlap}
	if z.Stage < 3 {
		share["reduce_bucket_size"] = w.bucket()
	}
	if m.Replicate > 1 {
		share["mics_shard_size"] = m.DP
	}
	out := map[string]any{
		"train_batch_size": c.Train.Batch, "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": c.Pipeline.Microbatches,
		"gradient_clipping": o.Clip, "zero_optimization": share, "optimizer": w.deepspeedOptimizer(), "scheduler": w.deepspeedScheduler(),
	}
	if p := w.precision(); p != "fp32" {
		out[p] = map[string]any{"enabled": true}
	}
	if m.TP > 1 {
		out["tensor_parallel"] = map[string]any{"autotp_size": m.TP}
	}
	w.refuse(c.Data.LastBatch == "wrap", "data.last_batch", c.Data.LastBatch, "a short last batch is used or dropped there", `use "drop" or "pad"`)
	if c.Data.LastBatch == "drop" {
		out["dataloader_drop_last"] = true
	}
	if m.PP > 1 {
		out["pipeline"] = map[string]any{"stages": m.PP}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		w.no("optim", "", fmt.Sprintf("cannot be written: %v", err), "use finite numbers")
	}
	return string(text) + "\n"
}

func (w *writer) deepspeedOptimizer() map[string]any {
	o := w.c.Optim
	params := map[string]any{"lr": o.LR, "weight_decay": o.WeightDecay}
	if o.Rule == "sgd" {
		params["momentum"] = o.Momentum
		return map[string]any{"type": "SGD", "params": params}
	}
	params["betas"], params["eps"] = o.Betas, o.Eps
	return map[string]any{"type": "AdamW", "params": params}
}

func (w *writer) deepspeedScheduler() map[string]any {
	o, steps := w.c.Optim, w.c.Train.Steps
	params := map[string]any{"warmup_num_steps": o.Warmup, "warmup_type": "linear"}
	kind := "WarmupLR"
	switch o.Curve {
	case "linear":
		kind = "WarmupDecayLR"
		params["total_num_steps"] = steps
		w.refuse(o.MinLR != 0, "optim.min_lr", o.MinLR, "the linear curve falls to 0 there", "use 0")
	case "cosine":
		kind = "WarmupCosineLR"
		params["total_num_steps"], params["cos_min_ratio"] = steps, o.MinLR/o.LR
		return map[string]any{"type": kind, "params": params}
	}
	params["warmup_max_lr"] = o.LR
	return map[string]any{"type": kind, "params": params}
}
