// Package ep shares experts out: the expert axis.
//
// Ranks along it see different samples, as data ranks do, and each holds E/e of a block's E experts. Two all-to-alls bring tokens to
// their experts and back (Lepikhin et al. 2020, §3.2); backward has two more.
//
//	rank 0: tokens a b c   experts 0 1      a→0 b→2 c→1      rank 0 computes a c | d
//	rank 1: tokens d e f   experts 2 3      d→1 e→3 f→2      rank 1 computes b | f e
//
// Gradients of experts are summed over the data axes without this one, since no other rank along it holds them; all other
// parameters over all data axes, this one included. Cost per layer and microbatch: four exchanges of k·T·D elements, each part padded
// to the longest. Read next: nn/dispatch.go, which lays out the exchange, and package zero.
package ep
