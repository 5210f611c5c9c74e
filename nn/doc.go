// Package nn is the models: layers with an explicit forward and a backward in two halves, and the whole models that every
// cut is compared with.
//
// A model is a flat list of layers, so cutting a pipeline is choosing runs of it. There is no tape: a forward returns what its
// backward needs (Saved), and several microbatches in flight are several of them. The backward is split into the
// input gradient (I), which the stage before waits for, and the weight gradient (W), which nobody does.
//
//	      Forward          BackwardInput       BackwardWeight
//	x ─▶ layer ─▶ y    dx ◀─ layer ◀─ dy      Param.Grad += ...
//	        └─ Saved ─────────▲──┴─ Saved ─────────▲
//
// Model code is written once against Kit: Serial makes whole layers, tp.Kit one rank's slice. Param is the one record of what a
// rank holds of a parameter; reduction, norms, ZeRO and checkpoints read it and have no rule of their own.
//
// Letters, used everywhere: B batch, S sequence, T = B·S tokens, D width, H heads, K key/value heads, F hidden, V vocabulary,
// L layers; p pipeline ranks, m microbatches, v chunks, t tensor ranks, d data ranks. Activations are flat [T D].
//
// Cost of a block in multiply-adds a token: attention 2D² + 2D·K·hd and S·D for the heads (causal half), feed-forward 2DF (3DF gated); the backward
// costs twice the forward. Read next: package tp, package pp.
package nn
