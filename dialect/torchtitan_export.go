package dialect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"triax/nn"
)

// torchtitan writes a job's TOML file for torchtitan 0.2.2.
func (w *writer) torchtitan() string {
	c, m, z, o := w.c, w.c.Mesh, w.c.Zero, w.c.Optim
	name, flavor := w.titanModel()
	shard, replicate := m.DP, m.Replicate
	w.refuse(m.EP > 1, "mesh.ep", m.EP, "the models that are known here have no experts", "use 1")
	switch {
	case z.Stage == 0 && m.Replicate == 1:
		shard, replicate = 1, m.DP
	case m.DP > 1:
		w.refuse(z.Stage != 3, "zero.stage", z.Stage, "data ranks share out everything (ZeRO 3) or nothing (0, as mesh.dp without mesh.dp_replicate) there", "use 3")
	}
	w.refuse(m.TP > 1 && !m.SequenceParallel, "mesh.sequence_parallel", false, "tensor ranks always share out the tokens between layers there", "use true")
	w.refuse(strings.Join(m.Axes, " ") != "pp dp_replicate dp ep cp tp", "mesh.axes", m.Axes, "ranks are ordered pp, dp_replicate, dp_shard, cp, tp there", `use ["pp", "dp_replicate", "dp", "ep", "cp", "tp"]`)
	w.refuse(o.Rule != "adamw", "optim.rule", o.Rule, "want AdamW", `use "adamw"`)
	w.refuse(w.precision() == "fp16", "cluster.precision", "fp16", "16-bit floats with loss scaling are not trained there", `use "bf16"`)
	keep := map[bool]string{true: "never", false: "always"}[z.KeepAfterForward]
	parallel := map[string]any{
		"data_parallel_shard_degree": shard, "data_parallel_replicate_degree": replicate, "tensor_parallel_degree": m.TP, "pipeline_parallel_degree": m.PP,
		"context_parallel_degree": m.CP, "fsdp_reshard_after_forward": keep, "enable_async_tensor_parallel": m.TPOverlap && m.TP > 1,
	}
	local := c.Train.Batch / max(1, m.Replicas())
	if m.PP > 1 {
		w.titanStages(parallel)
		parallel["pipeline_parallel_microbatch_size"] = w.micro()
	} else {
		local = w.micro()
	}
	curve := map[string]any{"warmup_steps": o.Warmup, "min_lr_factor": o.MinLR / o.LR, "decay_type": o.Curve}
	if o.Curve == "constant" {
		curve["decay_type"], curve["decay_ratio"] = "linear", 0.0
	}
	mixed := map[string]string{"fp32": "float32"}[w.precision()]
	if mixed == "" {
		mixed = "bfloat16"
	}
	out := map[string]any{
		"model": map[string]any{"name": name, "flavor": flavor},
		"training": map[string]any{"local_batch_size": local, "global_batch_size": c.Train.Batch, "seq_len": c.Model.Sequence, "max_norm": o.Clip, "steps": c.Train.Steps,
			"dtype": "float32", "mixed_precision_param": mixed, "seed": int64(c.Train.Seed)},
		"optimizer":             map[string]any{"name": "AdamW", "lr": o.LR, "beta1": o.Betas[0], "beta2": o.Betas[1], "eps": o.Eps, "weight_decay": o.WeightDecay},
		"lr_scheduler":          curve,
		"parallelism":           parallel,
		"activation_checkpoint": map[string]any{"mode": c.Model.Recompute},
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# torchtitan 0.2.2, %d ranks. Data, tokenizer and checkpoint paths are left to you.\n", m.World())
	if err := toml.NewEncoder(&b).Encode(out); err != nil {
		w.no("train", "", fmt.Sprintf("cannot be written: %v", err), "use finite numbers")
	}
	return b.String()
}

// titanModel finds the flavor with this model's sizes.
func (w *writer) titanModel() (name, flavor string) {
	m := w.c.Model
	for _, known := range sortedKeys(titanModels) {
		f := titanModels[known]
		f.Sequence = m.Sequence
		f = f.Resolved()
		if f.Family == m.Family && f.Layers == m.Layers && f.Width == m.Width && f.Heads == m.Heads && f.KVHeads == m.KVHeads && f.Hidden == m.Hidden && f.Vocab == m.Vocab &&
			f.HeadDim == m.HeadDim && f.RopeBase == m.RopeBase {
			name, flavor, _ = strings.Cut(known, " ")
		}
	}
	w.refuse(name == "", "model", fmt.Sprintf("%s, %d layers, width %d", m.Family, m.Layers, m.Width), "not among the flavors that are known here", "llama3 with debugmodel, 8B, 70B or 405B")
	w.refuse(m.Tied, "model.tied", true, "these models have an output matrix of their own there", "use false")
	w.refuse(m.Dropout != 0, "model.dropout", m.Dropout, "these models have no dropout there", "use 0")
	w.refuse(m.Recompute == nn.RecomputeSelective, "model.recompute", m.Recompute, "the attention half of each block is made again here, other products there", `use "none" or "full"`)
	w.refuse(m.Recompute == nn.RecomputeFull && m.RecomputeLayers > 0 && m.RecomputeLayers < m.Layers, "model.recompute_layers", m.RecomputeLayers, "every n-th block is recomputed there, the first ones here", "use 0")
	return name, flavor
}

func (w *writer) titanStages(parallel map[string]any) {
	p, m := w.c.Pipeline, w.c.Mesh
	theirs := ""
	for name, ours := range titanSchedules {
		if ours == p.Schedule && p.File == "" {
			theirs = name
		}
	}
	w.refuse(theirs == "", "pipeline.schedule", p.Schedule+p.File, "no counterpart there", "1f1b, gpipe, interleaved, looped-bfs, zb-v or dualpipe-v")
	parallel["pipeline_parallel_schedule"] = theirs
	stages := m.PP * max(1, p.Chunks)
	for first := range 4 {
		for last := range 4 {
			list := titanLayers(w.c.Model.Layers, stages, first, last)
			same := len(p.Layers) == 0 && first == 0 && last == 0 && even(list) || list != nil && slices.Equal(list, p.Layers)
			if !same {
				continue
			}
			parallel["pipeline_parallel_first_stage_less_layers"], parallel["pipeline_parallel_last_stage_less_layers"] = first, last
			if p.Chunks > 2 || p.Chunks == 1 && theirs != "1F1B" && theirs != "GPipe" {
				parallel["pipeline_parallel_layers_per_stage"] = (w.c.Model.Layers + first + last + stages - 1) / stages
			}
			return
		}
	}
	w.no("pipeline.layers", p.Layers, fmt.Sprintf("%d stages are cut evenly there, less some layers of the first and the last", stages), "for example "+fmt.Sprint(titanLayers(w.c.Model.Layers, stages, 1, 1)))
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
