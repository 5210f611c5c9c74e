package dialect

import (
	"fmt"
	"strings"

	"triax/configs"
)

// megatron reads an argument list of Megatron-LM's pretrain_gpt.py, or a shell script that launches it. Defaults are those of
// megatron/training/arguments.py and the configuration classes it is made from, core 0.20.
func (r *reader) megatron(text string) {
	calls, err := commands(text)
	if err != nil {
		r.refuse("script", "", err.Error(), "give the arguments themselves, after --")
		return
	}
	launcher, args := arguments(calls, "--num-layers", "--hidden-size")
	if args == nil {
		r.refuse("script", "", "no command in it has --num-layers or --hidden-size", "give the arguments themselves, after --")
		return
	}
	f := r.parseFlags(args)
	m := &megatronArgs{flags: f, reader: r, c: r.Config}
	m.world(launcher)
	m.model()
	m.cut()
	m.zero()
	m.loop()
	f.rest(megatronUnused, megatronRefused, megatronKnown)
}

type megatronArgs struct {
	*flags
	*reader
	c *configs.Config
}

// world is the number of ranks: what the caller says, or the launcher's nproc_per_node x nnodes.
func (m *megatronArgs) world(launcher []string) {
	quiet := &reader{from: m.from} // torchrun's other flags say where, not what
	l := quiet.parseFlags(dropUntilFlag(launcher))
	get := func(name string) int {
		return l.int("--"+name, l.int("--"+strings.ReplaceAll(name, "_", "-"), 0, ""), "")
	}
	per, nodes := get("nproc_per_node"), get("nnodes")
	m.World = m.options.World
	if m.World == 0 && per > 0 {
		m.World = per * max(nodes, 1)
		m.taken("launcher", fmt.Sprintf("%d x %d", max(nodes, 1), per), "ranks")
	}
	if per > 0 {
		m.cluster("gpus_per_node", int64(per))
	}
	if m.World == 0 {
		m.refuse("--world", "0", "the number of ranks is not in the script", "give it: --world 8")
		m.World = 1
	}
}

func dropUntilFlag(args []string) []string {
	for i, a := range args {
		if strings.HasPrefix(a, "--") {
			var out []string
			for _, x := range args[i:] {
				if strings.HasPrefix(x, "--") || len(out) > 0 && strings.HasPrefix(out[len(out)-1], "--") {
					out = append(out, x)
				}
			}
			return out
		}
	}
	return nil
}

// megatronUnused: paths, logging, checkpoints, kernels and fusions, launching: they change where and how fast a step runs there, not what it
// computes or moves.
var megatronUnused = []string{
	"--data-*", "--mock-data", "--tokenizer-*", "--vocab-file", "--merge-file", "--split", "--num-workers", "--no-create-attention-mask-in-dataloader",
	"--no-mmap-bin-files", "--tiktoken-*", "--train-data-path", "--valid-data-path", "--test-data-path", "--dataloader-type", "--full-validation",
	"--log-*", "--tensorboard-*", "--wandb-*", "--timing-log-*", "--no-log-*", "--profile", "--profile-*", "--use-pytorch-profiler", "--record-memory-history",
	"--save", "--load", "--save-interval", "--ckpt-*", "--dist-ckpt-*", "--use-dist-ckpt", "--no-load-*", "--no-save-*", "--exit-*", "--async-save", "--auto-detect-ckpt-format",
	"--eval-interval", "--eval-iters", "--distributed-*", "--local-rank", "--attention-backend", "--use-flash-attn", "--transformer-impl",
	"--use-mcore-models", "--use-legacy-models", "--no-masked-softmax-fusion", "--no-bias-*-fusion", "--no-rope-fusion", "--no-gradient-accumulation-fusion",
	"--no-persist-layer-norm", "--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl", "--manual-gc", "--manual-gc-interval", "--empty-unused-memory-level",
	"--moe-grouped-gemm", "--moe-permute-fusion", "--moe-router-fusion", "--moe-token-dispatcher-type", "--use-cpu-initialization", "--no-async-tensor-model-parallel-allreduce",
	"--tp-comm-*", "--DDP-impl", "--loss-scale", "--initial-loss-scale", "--min-loss-scale", "--loss-scale-window", "--hysteresis", "--accumulate-allreduce-grads-in-fp32",
	"--attention-softmax-in-fp32", "--no-query-key-layer-scaling", "--apply-query-key-layer-scaling", "--calculate-per-token-loss", "--no-check-for-nan-in-loss-and-grad",
	"--ddp-pad-buckets-for-high-nccl-busbw", "--enable-experimental", "--nccl-*", "--use-nccl-ub", "--cuda-graph-*", "--enable-cuda-graph", "--rerun-mode", "--no-one-logger",
	"--overlap-p2p-communication-warmup-flush", "--no-overlap-p2p-communication", "--gradient-accumulation-fusion", "--legacy-tokenizer", "--make-*-cache",
}

// megatronRefused: settings that change what is computed or what it costs, and have no counterpart.
var megatronRefused = map[string]string{
	"--multi-latent-attention": "multi-head latent attention is not built here", "--mtp-num-layers": "multi-token prediction is not built here",
	"--moe-shared-expert-intermediate-size": "shared experts are not built here", "--moe-router-topk-scaling-factor": "scaled routing is not built here",
	"--moe-router-enable-expert-bias": "routing by expert bias is not built here", "--moe-router-num-groups": "routing by groups is not built here",
	"--fp8-format": "8-bit products are not computed here", "--fp4-format": "4-bit products are not computed here",
	"--apply-layernorm-1p": "norm weights stored less one are not built here", "--window-size": "sliding windows are not built here",
	"--optimizer-cpu-offload": "optimizer states in host memory have no counterpart", "--cpu-offloading": "activations in host memory have no counterpart",
	"--hybrid-override-pattern": "hybrid models are not built here", "--spec": "layer specifications of the user's own cannot be read",
	"--qk-layernorm": "norms on queries and keys are not read here", "--add-qkv-bias": "biases on queries, keys and values alone are not read here",
	"--use-rope-scaling": "scaled rotary positions are not read here", "--decoupled-lr": "a learning rate of the embedding's own is not built here",
	"--decoupled-min-lr": "a learning rate of the embedding's own is not built here", "--microbatch-group-size-per-virtual-pipeline-stage": "rounds are as long as the pipeline here",
	"--freeze-layers": "every parameter is trained here", "--heterogeneous-layers-config-path": "all blocks have one shape here",
	"--fp8-param-gather": "8-bit gathers are not made here", "--fp8-amax-history-len": "8-bit products are not computed here", "--fp8-amax-compute-algo": "8-bit products are not computed here",
	"--delay-wgrad-compute": "use a zero-bubble schedule", "--expert-tensor-parallel-size": "experts are not cut over tensor ranks here",
	"--moe-layer-freq": "every block has experts, or none", "--grad-reduce-in-bf16": "gradients are reduced in fp32 here",
}
