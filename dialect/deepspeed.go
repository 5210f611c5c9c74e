package dialect

import (
	"encoding/json"
	"fmt"
	"strings"

	"triax/optim"
)

// deepspeed reads a DeepSpeed configuration in JSON (0.19; docs/_pages/config-json.md and the classes behind it). Such a file says nothing of the
// model, nor of pipeline ranks: those come from Options.Base.
func (r *reader) deepspeed(text string) {
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&root); err != nil {
		r.refuse("file", "", "not JSON: "+err.Error(), `a file starts with {`)
		return
	}
	if r.options.Base == nil {
		r.refuse("--model", "", "a DeepSpeed file does not say which model it trains", "name a preset or one of our files: --model llama2-7b")
	}
	t := &deepspeedFile{tree: tree{r: r, root: root, read: map[string]bool{}}, reader: r}
	for _, path := range leaves("", root) { // Hugging Face's trainer fills these in
		if v, _ := t.find(path); v == "auto" {
			t.tree.read[path] = true
			r.differs(path, "auto", "left as the model's file has it")
			remove(root, strings.Split(path, "."))
		}
	}
	t.mesh()
	t.zero()
	t.batch()
	t.optimizer()
	t.scheduler()
	t.precision()
	t.rest(deepspeedUnused, deepspeedRefused, deepspeedKnown)
}

type deepspeedFile struct {
	tree
	*reader
}

func remove(m map[string]any, path []string) {
	for ; len(path) > 1; path = path[1:] {
		m = m[path[0]].(map[string]any)
	}
	delete(m, path[0])
}

func (t *deepspeedFile) mesh() {
	m := &t.Config.Mesh
	m.TP = t.degree("tensor_parallel.autotp_size", m.TP, "mesh.tp")
	if m.TP == 0 {
		m.TP = 1
	}
	if n := t.degree("sequence_parallel_size", 1, "mesh.cp"); n > 1 {
		m.CP = n
		t.differs("sequence_parallel_size", fmt.Sprint(n), "ranks swap heads for tokens there; here keys and values go round a ring")
	}
	if t.has("pipeline.stages") {
		if v, _ := t.find("pipeline.stages"); v != "auto" {
			m.PP = t.degree("pipeline.stages", m.PP, "mesh.pp")
		}
	}
	t.World = t.options.World
	if t.World == 0 {
		t.refuse("--world", "0", "the number of ranks is not in the file", "give it: --world 8")
		t.World = 1
	}
}

// zero reads zero_optimization. MiCS shards inside groups of some size and repeats the groups: our dp_replicate.
func (t *deepspeedFile) zero() {
	z, m := &t.Config.Zero, &t.Config.Mesh
	const at = "zero_optimization."
	z.Stage = t.int(at+"stage", 0, "zero.stage")
	z.Overlap = t.bool(at+"overlap_comm", z.Stage == 3, "zero.overlap")
	z.BucketElements = t.int(at+"reduce_bucket_size", 500_000_000, "zero.bucket_elements")
	data := t.divide("--world", t.World, m.TP*m.PP*m.CP, fmt.Sprintf("ranks over tensor %d, pipeline %d and context %d", m.TP, m.PP, m.CP))
	m.DP, m.Replicate, m.EP = data, 1, max(1, m.EP)
	if n := t.int(at+"mics_shard_size", -1, "mesh.dp_replicate"); n > 0 {
		m.Replicate = t.divide(at+"mics_shard_size", data, n, "data ranks over ranks of a shard group")
		m.DP = n
	}
	if m.EP > 1 {
		m.DP = t.divide("--world", m.DP, m.EP, "data ranks over expert ranks")
	}
	if m.PP > 1 && z.Stage >= 2 {
		t.refuse(at+"stage", fmt.Sprint(z.Stage), "DeepSpeed's pipeline runs ZeRO 0 and 1 only; triax runs all", "use 1, or import without a pipeline and set mesh.pp afterwards")
	}
	for _, what := range []string{"offload_optimizer", "offload_param"} {
		device := t.text(at+what+".device", "none", "")
		if device != "none" {
			t.refuse(at+what+".device", device, "states and parameters stay in the rank's memory here", "use none")
		}
	}
	for _, name := range []string{"stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance", "stage3_param_persistence_threshold", "allgather_bucket_size", "sub_group_size"} {
		if v, ok := t.find(at + name); ok {
			t.tree.read[at+name] = true
			t.differs(at+name, fmt.Sprint(v), "layers are gathered whole, zero.prefetch of them ahead")
		}
	}
}

// batch: two of the three sizes give the third (train_batch_size = micro batch x accumulation steps x data ranks).
func (t *deepspeedFile) batch() {
	m := &t.Config.Mesh
	data := m.Replicas()
	global, micro, steps := t.int("train_batch_size", 0, "train.batch"), t.int("train_micro_batch_size_per_gpu", 0, "pipeline.microbatches"), t.int("gradient_accumulation_steps", 0, "pipeline.microbatches")
	switch {
	case global > 0 && micro > 0:
		n := t.divide("train_batch_size", global, micro*data, fmt.Sprintf("samples over %d data ranks, %d at a time", data, micro))
		if steps > 0 && steps != n {
			t.refuse("gradient_accumulation_steps", fmt.Sprint(steps), fmt.Sprintf("train_batch_size %d is %d samples x %d data ranks x %d", global, micro, data, n), fmt.Sprintf("use %d", n))
		}
		steps = n
	case global > 0:
		steps = max(1, steps)
		t.divide("train_batch_size", global, steps*data, fmt.Sprintf("samples over %d data ranks and %d steps", data, steps))
	case micro > 0:
		steps = max(1, steps)
		global = micro * steps * data
	default:
		t.refuse("train_batch_size", "0", "neither it nor train_micro_batch_size_per_gpu is given", "give one of them")
		return
	}
	t.Config.Train.Batch, t.Config.Pipeline.Microbatches = global, steps
	if t.bool("dataloader_drop_last", false, "data.last_batch") {
		t.Config.Data.LastBatch = "drop"
	}
}

func (t *deepspeedFile) optimizer() {
	o := &t.Config.Optim
	o.Clip = t.float("gradient_clipping", 1, "optim.clip")
	if !t.has("optimizer") {
		return
	}
	*o = optim.Config{Clip: o.Clip, Curve: "constant"}
	const at = "optimizer.params."
	switch kind := t.text("optimizer.type", "AdamW", "optim.rule"); strings.ToLower(kind) {
	case "adam", "adamw", "fusedadam":
		o.Rule, o.Betas, o.Eps = "adamw", t.pair(at+"betas", 0.9, 0.999), t.float(at+"eps", 1e-8, "optim.eps")
		if !t.bool(at+"adam_w_mode", true, "optim.rule") {
			t.refuse(at+"adam_w_mode", "false", "weight decay is decoupled here", "use true")
		}
	case "sgd":
		o.Rule, o.Momentum = "sgd", t.float(at+"momentum", 0, "optim.momentum")
	default:
		t.refuse("optimizer.type", kind, "want Adam, AdamW or SGD", "use AdamW")
	}
	o.LR = t.float(at+"lr", 1e-3, "optim.lr")
	o.WeightDecay = t.float(at+"weight_decay", 0, "optim.weight_decay")
}

func (t *deepspeedFile) pair(path string, a, b float64) []float64 {
	v, ok := t.take(path, "optim.betas")
	if !ok {
		return []float64{a, b}
	}
	list, _ := v.([]any)
	if len(list) == 2 {
		x, okX := list[0].(float64)
		y, okY := list[1].(float64)
		if okX && okY {
			return []float64{x, y}
		}
	}
	t.r.refuse(path, fmt.Sprint(v), "want two numbers", fmt.Sprintf("use [%g, %g]", a, b))
	return []float64{a, b}
}

func (t *deepspeedFile) scheduler() {
	o, run := &t.Config.Optim, &t.Config.Train
	if !t.has("scheduler") {
		return
	}
	const at = "scheduler.params."
	kind := t.one("scheduler.type", "WarmupLR", "optim.curve", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
	o.Curve = map[string]string{"WarmupLR": "constant", "WarmupDecayLR": "linear", "WarmupCosineLR": "cosine"}[kind]
	o.Warmup = t.int(at+"warmup_num_steps", 1000, "optim.warmup")
	if kind != "WarmupLR" {
		run.Steps = t.int(at+"total_num_steps", run.Steps, "train.steps")
	}
	if kind == "WarmupCosineLR" {
		o.MinLR = o.LR * t.float(at+"cos_min_ratio", 0.0001, "optim.min_lr")
	} else {
		o.LR = t.float(at+"warmup_max_lr", o.LR, "optim.lr")
	}
	if low := t.float(at+"warmup_min_lr", 0, "the rate rises from 0"); low != 0 {
		t.differs(at+"warmup_min_lr", fmt.Sprint(low), "the rate rises from 0")
	}
	if shape := t.text(at+"warmup_type", "log", "linear"); shape != "linear" {
		t.differs(at+"warmup_type", shape, "the rate rises linearly")
	}
	if o.Warmup > run.Steps {
		run.Steps = o.Warmup
		t.differs(at+"warmup_num_steps", fmt.Sprint(o.Warmup), "train.steps is raised to it")
	}
}

func (t *deepspeedFile) precision() {
	brain, half := t.bool("bf16.enabled", t.bool("bfloat16.enabled", false, "cluster.precision"), "cluster.precision"), t.bool("fp16.enabled", false, "cluster.precision")
	switch {
	case brain && half:
		t.refuse("fp16.enabled", "true", "contradicts bf16.enabled", "leave one out")
	case half:
		t.differs("fp16.enabled", "true", "16-bit floats are priced as bf16, without loss scaling")
		t.cluster("precision", "bf16")
	case brain:
		t.cluster("precision", "bf16")
	default:
		t.cluster("precision", "fp32")
	}
}

var deepspeedUnused = []string{
	"steps_per_print", "wall_clock_breakdown", "dump_state", "memory_breakdown", "log_level", "tensorboard.*", "wandb.*", "csv_monitor.*", "comet.*", "monitor_config.*", "flops_profiler.*",
	"comms_logger.*", "checkpoint.*", "aio.*", "autotuning.*", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "fp16.*", "bf16.*", "compile.*", "communication_data_type",
	"seq_parallel_communication_data_type", "prescale_gradients", "disable_allgather", "vocabulary_size", "nebula.*", "hybrid_engine.*", "graph_harvesting", "timers.*", "optimizer.legacy_fusion",
	"optimizer.params.torch_adam", "optimizer.params.bias_correction", "scheduler.params.last_batch_iteration", "scheduler.params.warmup_min_ratio", "tensor_parallel.*", "pipeline.*",
	"zero_optimization.contiguous_gradients", "zero_optimization.reduce_scatter", "zero_optimization.allgather_partitions", "zero_optimization.round_robin_gradients",
	"zero_optimization.stage3_gather_16bit_weights_on_model_save", "zero_optimization.stage3_gather_fp16_weights_on_model_save", "zero_optimization.load_from_fp32_weights",
	"zero_optimization.elastic_checkpoint", "zero_optimization.ignore_unused_parameters", "zero_optimization.memory_efficient_linear", "zero_optimization.offload_*",
	"zero_optimization.use_multi_rank_bucket_allreduce", "zero_optimization.log_trace_cache_warnings", "zero_optimization.mics_hierarchical_params_gather",
	"activation_checkpointing.contiguous_memory_optimization", "activation_checkpointing.synchronize_checkpoint_boundary", "activation_checkpointing.profile",
	"activation_checkpointing.number_checkpoints", "data_types.*",
}

var deepspeedRefused = map[string]string{
	"zero_optimization.zero_hpz_partition_size": "a second copy of the parameters inside a node is not kept here", "zero_optimization.zero_quantized_*": "quantised collectives are not made here",
	"activation_checkpointing.partition_activations": "kept activations are shared out by sequence parallelism here", "activation_checkpointing.cpu_checkpointing": "activations stay in the rank's memory here",
	"sparse_attention.*": "attention is dense here", "elasticity.*": "batches of changing size are not read here", "compression_training.*": "weights are not compressed here",
	"curriculum_learning.*": "the data's order is that of the run's seed", "data_efficiency.*": "the data's order is that of the run's seed", "progressive_layer_drop.*": "every layer is computed here",
	"amp.*": "use bf16", "gradient_predivide_factor": "gradients are summed and scaled once here", "sparse_gradients": "gradients are dense here", "zero_optimization.zenflow.*": "not built here",
	"quantize_training.*": "weights are not quantised here", "eigenvalue.*": "not built here", "torch_autocast.enabled": "use bf16", "gradient_allreduce_op": "the loss is divided by the global batch, collectives sum",
}

var deepspeedKnown = []string{
	"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "optimizer.type", "optimizer.params.lr", "scheduler.type",
	"scheduler.params.warmup_num_steps", "bf16.enabled", "fp16.enabled", "zero_optimization.stage", "zero_optimization.overlap_comm", "zero_optimization.reduce_bucket_size",
	"zero_optimization.mics_shard_size", "tensor_parallel.autotp_size", "sequence_parallel_size", "pipeline.stages", "activation_checkpointing.partition_activations",
}
