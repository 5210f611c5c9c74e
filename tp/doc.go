// Package tp cuts layers inside: each tensor rank holds a slice of every matrix, and partial results meet in collectives.
//
// A block has two crossings. A column-cut matrix needs its whole input and makes a slice of its output; the row-cut matrix
// after it takes that slice and makes a partial sum of the whole output (Shoeybi et al. 2019, §3).
//
//	x ──f── column(q k v) ── heads ── row ──g── + ──f── column(up) ── gelu ── row(down) ──g── y
//
//	                    forward f / g                    backward f / g
//	plain               nothing / all-reduce             all-reduce / nothing
//	sequence parallel   all-gather / reduce-scatter      reduce-scatter / all-gather
//
// Cost per block and microbatch: four all-reduces of T·D elements, and two more where the forward is recomputed. Sequence parallelism
// moves the same bytes as all-gathers and reduce-scatters, plus one all-gather of each column input
// for the weight gradient, and keeps norms, dropout and residuals at 1/t of the memory (Korthikanti et al. 2022, §4.2.2).
// The vocabulary is cut by rows in embedding, output and loss; logits never leave their rank. Read next: package nn, whose
// Serial kit makes the whole layers that these equal.
package tp
