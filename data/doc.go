// Package data turns text into tokens and tokens into batches.
//
// The batch of a step is a pure function of (seed, step): any rank of any mesh can make the part it needs alone,
// and a resumed run needs no more than its step. Samples are windows of the corpus; each epoch visits all of
// them once, in an order that is computed, not stored. A rank picks its part by its data coordinate only, so that
// tensor and pipeline peers always see the same tokens.
//
//	files ─▶ documents ─▶ | doc end doc end doc end ...           | held out |
//	                      |  0   |  1   |  2   |  3   |  4   |  5 |            windows of S tokens and the next
//	step 1, 4 samples:       3 0 4 1                                           permuted by (seed, epoch)
//	step 2:                  5 2 - -                                           padded: no valid token, no weight
//
// Of JSONL, samples are packed from whole examples: pack.go.
//
// It costs 4 bytes a token, once a process; a batch is views of it. Read next: Set.Global and Batch.Micro.
package data
