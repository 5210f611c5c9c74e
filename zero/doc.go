// Package zero keeps replicas from repeating themselves: data parallelism (ZeRO stage 0) and the three ZeRO stages, which cut optimizer
// state (1), gradients (2) and parameters (3) over the data axis (Rajbhandari et al. 2020, §5).
//
// An Optimizer owns a rank's parameters, gradients and optimizer state as flat buckets. Each bucket is padded to a multiple of
// the group and cut into equal shards that ignore parameter borders, so shards of any size work.
//
//	bucket   | w . . . . . . | b . | v . . . . |pad|
//	shards   |   rank 0   |   rank 1   |   rank 2   |
//
//	ZeRO stage   reduce per bucket and step                parameters
//	0            all-reduce                                whole, always
//	1            reduce-scatter                            all-gather after the update
//	2            reduce-scatter, every microbatch          all-gather after the update
//	3            reduce-scatter, every microbatch          all-gather before each use, freed after it
//
// Memory of weights, gradients and state per parameter and rank, d ranks, fp32 and AdamW: 16 bytes at stage 0, 8 + 8/d at stage 1,
// 4 + 12/d at stage 2, 16/d at stage 3 (and one layer's buffers). Traffic of a step with m microbatches, in units of the model's size on the wire:
// 2 at stages 0 and 1, 1 + m at 2, 3m at 3 (2m with keep_after_forward).
//
// Optimizer state can lie in memory-mapped files instead (disk.go).
//
// Parameters that do not learn (nn.Param.Frozen) have buckets of their own, without gradients, states, reductions, or gathers after updates; at
// stage 3 they are cut and gathered like all others.
//
// Order of a gradient's sums, one rule for all stages: microbatches, then the data axis, then what other axes owe (Param.Sum,
// tied copies), then norm, clip and update. Nothing divides: the loss was divided by the global number of tokens
// before backward. Read next: package train, which brings stages, schedules and this together.
package zero
