// Package cp cuts samples along the sequence: the context axis. Every layer but attention works token by token and does not
// notice; in attention, keys and values travel round a ring while queries stay (Liu et al. 2023, §3).
//
// A sample of S tokens is cut into 2c stretches for c ranks, and rank r holds stretches r and 2c-1-r: an early one that
// sees little and a late one that sees much, so that all ranks do the same work under the causal mask.
//
//	c = 2     stretch   0   1   2   3        work, in blocks of stretch x stretch
//	          rank      0   1   1   0        rank 0: (0,0) (3,0) (3,1) (3,2) (3,3)
//	                                         rank 1: (1,0) (1,1) (2,0) (2,1) (2,2)
//
// Cost per layer and microbatch: c-1 messages of a rank's keys and values in forward; in backward c-1 of them again and c
// of their gradients. Gradients of parameters are summed over the context axis with the data axis, whose ranks they replicate.
// Read next: package train, which loads the stretches.
package cp
