// Package dialect reads and writes the configurations of other training systems: argument lists of Megatron-LM (core 0.20), JSON files of
// DeepSpeed (0.19) and TOML files of torchtitan (0.2.2, the last release with them). So a user of one can price today's job and carry a better
// layout back.
//
//	theirs --Import--> Reading{Config, notes} --Config.TOML--> triax plan, search, train
//	ours   --Export--> theirs
//
// Nothing is dropped in silence. A Reading lists every setting found: taken over as it is, taken over with a difference, or without bearing on
// what triax computes (paths, logging, choices of kernels). What matters and has no counterpart is refused, all of it at once, under its
// name in the other system; and so does Export refuse what the other system cannot do.
//
// Numbering, defaults and units are those of the systems' own sources at the versions named; each table says where they differ from ours:
// batches (global, micro, per replica), data ranks (with or without experts), vocabularies (padded or not), pipelines (how layers are cut).
//
// Read reading.go first, then megatron.go, deepspeed.go, torchtitan.go.
package dialect
