package dialect

import (
	"fmt"

	"triax/optim"
)

// zero reads how the data axis shares out: the distributed optimizer is ZeRO stage 1, Megatron-FSDP 0 to 3 by its strategy.
func (m *megatronArgs) zero() {
	z := &m.c.Zero
	z.Stage = 0
	if m.on("--use-distributed-optimizer", "zero.stage = 1") {
		z.Stage = 1
	}
	fsdp := m.on("--use-megatron-fsdp", "zero.stage") || m.on("--use-custom-fsdp", "zero.stage")
	strategy := m.text("--data-parallel-sharding-strategy", "optim_grads_params", "zero.stage")
	if fsdp {
		stage, ok := map[string]int{"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}[strategy]
		if !ok {
			m.refuse("--data-parallel-sharding-strategy", strategy, "want no_shard, optim, optim_grads or optim_grads_params", "use optim_grads_params")
		}
		z.Stage = stage
	}
	if m.on("--use-torch-fsdp2", "zero.stage = 3") {
		z.Stage = 3
	}
	reduce, gather := m.on("--overlap-grad-reduce", "zero.overlap"), m.on("--overlap-param-gather", "zero.overlap")
	if z.Overlap = reduce || gather; reduce != gather && z.Stage > 0 {
		m.differs("--overlap-grad-reduce", "", "reductions and gathers overlap together, or not at all, here")
	}
	if n := m.int("--ddp-bucket-size", 0, "zero.bucket_elements"); n > 0 {
		z.BucketElements = n
	} else if z.Stage < 3 {
		z.BucketElements = max(40_000_000, 1_000_000*m.c.Mesh.DP*m.c.Mesh.EP) // what Megatron takes by default (distributed_data_parallel.py)
	}
}

// loop reads precision, optimizer, learning rate and length.
func (m *megatronArgs) loop() {
	switch half, brain := m.on("--fp16", "cluster.precision"), m.on("--bf16", "cluster.precision"); {
	case half && brain:
		m.refuse("--fp16", "", "contradicts --bf16", "leave one out")
	case half:
		m.differs("--fp16", "", "16-bit floats are priced as bf16, without loss scaling")
		m.cluster("precision", "bf16")
	case brain:
		m.cluster("precision", "bf16")
	default:
		m.cluster("precision", "fp32")
	}
	o, t := &m.c.Optim, &m.c.Train
	*o = optim.Default()
	switch rule := m.text("--optimizer", "adam", "optim.rule"); rule {
	case "adam":
		o.Rule = "adamw"
		o.Betas = []float64{m.float("--adam-beta1", 0.9, "optim.betas"), m.float("--adam-beta2", 0.999, "optim.betas")}
		o.Eps = m.float("--adam-eps", 1e-8, "optim.eps")
	case "sgd":
		o.Rule, o.Betas = "sgd", nil
		o.Momentum = m.float("--sgd-momentum", 0.9, "optim.momentum")
	default:
		m.refuse("--optimizer", rule, "want adam or sgd", "use adam")
	}
	o.WeightDecay = m.float("--weight-decay", 0.01, "optim.weight_decay")
	o.Clip = m.float("--clip-grad", 1, "optim.clip")
	o.LR = m.float("--lr", o.LR, "optim.lr")
	o.MinLR = m.float("--min-lr", 0, "optim.min_lr")
	t.Seed = uint64(m.int("--seed", 1234, "train.seed"))
	t.Steps = m.int("--train-iters", 0, "train.steps")
	if samples := m.int("--train-samples", 0, "train.steps"); samples > 0 {
		t.Steps = max(1, samples/max(1, t.Batch))
	}
	if t.Steps == 0 {
		t.Steps = 1
		m.differs("--train-iters", "0", "not given: one step")
	}
	m.curve()
}

// curve: Megatron's rate falls over --lr-decay-iters, here over the whole run.
func (m *megatronArgs) curve() {
	o, t := &m.c.Optim, &m.c.Train
	switch style := m.text("--lr-decay-style", "linear", "optim.curve"); style {
	case "constant", "linear", "cosine":
		o.Curve = style
	default:
		m.refuse("--lr-decay-style", style, "want constant, linear or cosine", "use cosine")
	}
	decay := m.int("--lr-decay-iters", 0, "optim.curve")
	if samples := m.int("--lr-decay-samples", 0, "optim.curve"); samples > 0 {
		decay = samples / max(1, t.Batch)
	}
	if decay > 0 && decay != t.Steps && o.Curve != "constant" {
		m.differs("--lr-decay-iters", fmt.Sprint(decay), fmt.Sprintf("the rate falls until the last step, %d", t.Steps))
	} else {
		decay = t.Steps
	}
	o.Warmup = m.int("--lr-warmup-iters", 0, "optim.warmup")
	if samples := m.int("--lr-warmup-samples", 0, "optim.warmup"); samples > 0 {
		o.Warmup = samples / max(1, t.Batch)
	}
	if share := m.float("--lr-warmup-fraction", 0, "optim.warmup"); share > 0 {
		o.Warmup = int(share * float64(decay))
	}
	if o.Warmup > t.Steps {
		m.differs("--lr-warmup-iters", fmt.Sprint(o.Warmup), fmt.Sprintf("the run is shorter: %d", t.Steps))
		o.Warmup = t.Steps
	}
}

// megatronKnown is for hints.
var megatronKnown = []string{
	"--num-layers", "--hidden-size", "--ffn-hidden-size", "--num-attention-heads", "--num-query-groups", "--seq-length", "--max-position-embeddings", "--swiglu",
	"--normalization", "--position-embedding-type", "--untie-embeddings-and-output-weights", "--disable-bias-linear", "--vocab-size", "--micro-batch-size", "--global-batch-size",
	"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size", "--expert-model-parallel-size", "--sequence-parallel", "--num-experts",
	"--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather", "--recompute-granularity", "--recompute-method", "--bf16", "--lr", "--lr-decay-style",
	"--lr-warmup-iters", "--train-iters", "--weight-decay", "--clip-grad",
}
