package dialect

import (
	"fmt"
	"strconv"

	"github.com/pelletier/go-toml/v2"

	"triax/nn"
	"triax/optim"
)

// torchtitan reads a job's TOML file (torchtitan 0.2.2, torchtitan/config/job_config.py; later versions are configured in Python).
func (r *reader) torchtitan(text string) {
	var root map[string]any
	if err := toml.Unmarshal([]byte(text), &root); err != nil {
		r.refuse("file", "", "not TOML: "+err.Error(), "a file starts with a section such as [model]")
		return
	}
	t := &titanFile{tree: tree{r: r, root: root, read: map[string]bool{}}, reader: r}
	t.model()
	t.mesh()
	t.pipeline()
	t.batch()
	t.recompute()
	t.optimizer()
	t.rest(titanUnused, titanRefused, titanKnown)
}

type titanFile struct {
	tree
	*reader
}

// titanModels are the flavors of torchtitan/models/llama3 whose attention is plain.
var titanModels = map[string]nn.Config{
	"llama3 debugmodel": {Family: nn.Llama, Layers: 6, Width: 256, Heads: 16, Hidden: 768, Vocab: 2048, RopeBase: 500000},
	"llama3 8B":         {Family: nn.Llama, Layers: 32, Width: 4096, Heads: 32, KVHeads: 8, Hidden: 14336, Vocab: 128256, RopeBase: 500000},
	"llama3 70B":        {Family: nn.Llama, Layers: 80, Width: 8192, Heads: 64, KVHeads: 8, Hidden: 28672, Vocab: 128256, RopeBase: 500000},
	"llama3 405B":       {Family: nn.Llama, Layers: 126, Width: 16384, Heads: 128, KVHeads: 8, Hidden: 53248, Vocab: 128256, RopeBase: 500000},
}

func (t *titanFile) model() {
	name := t.text("model.name", "llama3", "model.family") + " " + t.text("model.flavor", "debugmodel", "[model]")
	m, ok := titanModels[name]
	if !ok {
		t.refuse("model.flavor", name, "not among the models that are known here", "llama3 with debugmodel, 8B, 70B or 405B")
		m = titanModels["llama3 8B"]
	}
	m.Recompute = nn.RecomputeNone
	m.Sequence = t.int("training.seq_len", 2048, "model.sequence")
	t.Config.Model = m
	t.differs("model.flavor", name, "rotary positions without Llama 3.1's scaling")
}

// mesh: one degree of the data axis may be -1, what is left of the ranks. Expert ranks are a part of the data ranks there.
func (t *titanFile) mesh() {
	m, z := &t.Config.Mesh, &t.Config.Zero
	const at = "parallelism."
	m.TP, m.PP = t.degree(at+"tensor_parallel_degree", 1, "mesh.tp"), t.degree(at+"pipeline_parallel_degree", 1, "mesh.pp")
	m.CP, m.Replicate = t.degree(at+"context_parallel_degree", 1, "mesh.cp"), t.degree(at+"data_parallel_replicate_degree", 1, "mesh.dp_replicate")
	m.DP = t.int(at+"data_parallel_shard_degree", -1, "mesh.dp")
	m.EP = 1
	m.SequenceParallel = m.TP > 1
	m.TPOverlap = t.bool(at+"enable_async_tensor_parallel", false, "mesh.tp_overlap") && m.TP > 1
	others := m.TP * m.PP * m.CP * m.Replicate
	if t.World = t.options.World; t.World == 0 && m.DP > 0 {
		t.World = others * m.DP
	}
	switch {
	case t.World == 0:
		t.refuse("--world", "0", "the number of ranks is not in the file", "give it: --world 8")
		m.DP = 1
	case m.DP < 0:
		m.DP = t.divide("--world", t.World, others, "ranks over the other degrees")
	case m.DP*others != t.World:
		t.refuse(at+"data_parallel_shard_degree", fmt.Sprint(m.DP), fmt.Sprintf("%d x the other degrees %d is not --world %d", m.DP, others, t.World), "use -1")
	}
	// Sharded parameters are ZeRO 3, kept after the forward where a pipeline would gather them for every microbatch.
	z.Stage, z.Overlap = 0, true
	keep := t.one(at+"fsdp_reshard_after_forward", "default", "zero.keep_after_forward", "default", "always", "never")
	if m.DP > 1 {
		z.Stage = 3
		z.KeepAfterForward = keep == "never" || keep == "default" && m.PP > 1
	} else if m.Replicate > 1 { // plain data parallelism
		m.DP, m.Replicate = m.Replicate, 1
	}
}

// titanSchedules are the names of torch.distributed.pipelining that have a counterpart.
var titanSchedules = map[string]string{
	"1F1B": "1f1b", "GPipe": "gpipe", "Interleaved1F1B": "interleaved", "LoopedBFS": "looped-bfs", "ZBVZeroBubble": "zb-v", "DualPipeV": "dualpipe-v",
}

func (t *titanFile) pipeline() {
	p, m := &t.Config.Pipeline, &t.Config.Mesh
	const at = "parallelism.pipeline_parallel_"
	name := t.text(at+"schedule", "1F1B", "pipeline.schedule")
	first, last := t.int(at+"first_stage_less_layers", 1, "pipeline.layers"), t.int(at+"last_stage_less_layers", 1, "pipeline.layers")
	per := t.int(at+"layers_per_stage", 0, "pipeline.chunks")
	p.Schedule, p.Chunks, p.Layers = "1f1b", 0, nil
	if m.PP == 1 {
		return
	}
	ours, ok := titanSchedules[name]
	if !ok {
		t.refuse(at+"schedule", name, "no counterpart", "1F1B, GPipe, Interleaved1F1B, LoopedBFS, ZBVZeroBubble or DualPipeV")
		return
	}
	p.Schedule = ours
	chunks := 1
	if name != "1F1B" && name != "GPipe" {
		chunks = 2
	}
	if per > 0 {
		stages := (t.Config.Model.Layers + first + last + per - 1) / per
		chunks = t.divide(at+"layers_per_stage", stages, m.PP, "stages over pipeline ranks")
	}
	if chunks > 1 {
		p.Chunks = chunks
	}
	if all := t.Config.Model.Layers + first + last; first < 0 || last < 0 || m.PP*chunks > all {
		t.refuse("parallelism.pipeline_parallel_degree", fmt.Sprint(m.PP), fmt.Sprintf("%d layers and what the ends count for do not fill %d stages", t.Config.Model.Layers, m.PP*chunks), "use fewer pipeline ranks")
		return
	}
	p.Layers = titanLayers(t.Config.Model.Layers, m.PP*chunks, first, last)
	if p.Layers == nil {
		t.refuse(at+"first_stage_less_layers", fmt.Sprint(first), fmt.Sprintf("%d layers do not fill %d stages less %d and %d", t.Config.Model.Layers, m.PP*chunks, first, last), "use fewer pipeline ranks")
	}
}

// titanLayers is the layers of each stage where embedding and output count as some layers each (generate_llm_fqn_per_model_part); nil where a stage
// would have fewer than none.
func titanLayers(layers, stages, first, last int) []int {
	list := make([]int, stages)
	all := layers + first + last
	for i := range list {
		list[i] = all / stages
		if i < all%stages {
			list[i]++
		}
	}
	list[0] -= first
	list[stages-1] -= last
	if list[0] < 0 || list[stages-1] < 0 {
		return nil
	}
	return list
}

// batch: local_batch_size samples a data rank and forward pass, cut into pipeline microbatches; more passes fill global_batch_size.
func (t *titanFile) batch() {
	m, p := &t.Config.Mesh, &t.Config.Pipeline
	local, data := t.degree("training.local_batch_size", 8, "train.batch"), m.Replicas()
	global := t.int("training.global_batch_size", -1, "train.batch")
	if global < 0 {
		global = local * data
	}
	size := t.degree("parallelism.pipeline_parallel_microbatch_size", 1, "pipeline.microbatches")
	passes := t.divide("training.global_batch_size", global, local*data, fmt.Sprintf("samples over %d data ranks, %d at a time", data, local))
	p.Microbatches = passes
	if m.PP > 1 {
		p.Microbatches = passes * t.divide("parallelism.pipeline_parallel_microbatch_size", local, size, "a rank's samples over microbatches")
		if passes > 1 {
			t.differs("training.global_batch_size", fmt.Sprint(global), fmt.Sprintf("%d passes through the pipeline become one of %d microbatches", passes, p.Microbatches))
		}
	}
	t.Config.Train.Batch = global
}

func (t *titanFile) recompute() {
	const at = "activation_checkpoint."
	m := &t.Config.Model
	mode := t.one(at+"mode", "selective", "model.recompute", "none", "selective", "full")
	option := t.text(at+"selective_ac_option", "2", "model.recompute_layers")
	switch mode {
	case "full":
		m.Recompute = nn.RecomputeFull
	case "selective":
		n, err := strconv.Atoi(option)
		if err != nil {
			m.Recompute = nn.RecomputeSelective
			t.differs(at+"selective_ac_option", option, "every second product is kept there; here the attention half of each block is made again")
			return
		}
		m.Recompute, m.RecomputeLayers = nn.RecomputeFull, max(1, m.Layers/max(1, n))
		t.differs(at+"selective_ac_option", option, fmt.Sprintf("every %s. block there, the first %d here", option, m.RecomputeLayers))
	}
}

func (t *titanFile) optimizer() {
	o, run := &t.Config.Optim, &t.Config.Train
	*o = optim.Default()
	if kind := t.text("optimizer.name", "AdamW", "optim.rule"); kind != "AdamW" {
		t.refuse("optimizer.name", kind, "want AdamW", "use AdamW")
	}
	o.LR, o.Eps = t.float("optimizer.lr", 8e-4, "optim.lr"), t.float("optimizer.eps", 1e-8, "optim.eps")
	o.Betas = []float64{t.float("optimizer.beta1", 0.9, "optim.betas"), t.float("optimizer.beta2", 0.95, "optim.betas")}
	o.WeightDecay, o.Clip = t.float("optimizer.weight_decay", 0.1, "optim.weight_decay"), t.float("training.max_norm", 1, "optim.clip")
	run.Steps = t.int("training.steps", 10000, "train.steps")
	o.Warmup = min(run.Steps, t.int("lr_scheduler.warmup_steps", 200, "optim.warmup"))
	o.Curve = t.one("lr_scheduler.decay_type", "linear", "optim.curve", "linear", "cosine")
	o.MinLR = o.LR * t.float("lr_scheduler.min_lr_factor", 0, "optim.min_lr")
	if share := t.float("lr_scheduler.decay_ratio", 1, "optim.curve"); share == 0 {
		o.Curve = "constant"
	} else if share != 1 {
		t.differs("lr_scheduler.decay_ratio", fmt.Sprint(share), "the rate falls from the end of the warm-up on")
	}
	if seed := t.int("debug.seed", t.int("training.seed", 1, "train.seed"), "train.seed"); seed > 0 {
		run.Seed = uint64(seed)
	}
	switch t.one("training.dtype", "float32", "cluster.precision", "float32", "bfloat16") {
	case "bfloat16":
		t.refuse("training.dtype", "bfloat16", "weights without a copy in fp32 are not trained here", "use float32 with mixed_precision_param")
	default:
		precision := "bf16"
		if t.one("training.mixed_precision_param", "bfloat16", "cluster.precision", "bfloat16", "float32") == "float32" {
			precision = "fp32"
		}
		t.cluster("precision", precision)
	}
}

var titanUnused = []string{
	"job.*", "profiling.*", "metrics.*", "checkpoint.*", "compile.*", "comm.*", "debug.*", "validation.*", "experimental.*", "memory_estimation.*", "fault_tolerance.*", "model.hf_assets_path", "model.tokenizer_path",
	"model.print_after_conversion", "optimizer.implementation", "training.dataset", "training.dataset_path", "training.gc_*", "training.deterministic", "training.dataloader.*", "training.mixed_precision_reduce",
	"activation_checkpoint.*", "parallelism.context_parallel_rotate_method", "parallelism.context_parallel_load_balancer", "parallelism.disable_loss_parallel", "parallelism.pipeline_parallel_expert_parallel_overlap",
	"parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree", "parallelism.expert_parallel_comm_backend", "lr_scheduler.total_steps", "quantize.*",
}

var titanRefused = map[string]string{
	"model.converters": "8-bit products are not computed here", "training.enable_cpu_offload": "states stay in the rank's memory here", "optimizer.early_step_in_backward": "the update waits for the norm here",
	"parallelism.module_fqns_per_model_part": "give the layers of each stage as pipeline.layers", "parallelism.pipeline_parallel_schedule_csv": "write the schedule as text and name it in pipeline.file",
}

var titanKnown = []string{
	"model.name", "model.flavor", "training.seq_len", "training.local_batch_size", "training.global_batch_size", "training.max_norm", "training.steps", "optimizer.name", "optimizer.lr",
	"lr_scheduler.warmup_steps", "lr_scheduler.decay_type", "parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree", "parallelism.tensor_parallel_degree",
	"parallelism.pipeline_parallel_degree", "parallelism.pipeline_parallel_schedule", "parallelism.context_parallel_degree", "activation_checkpoint.mode",
}
