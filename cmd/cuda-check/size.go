package main

// sizes are how large things are.
type sizes struct {
	gemm         int // rows and columns of a square product
	copied       int // elements of two bytes
	rows         int // tokens of a kernel's input
	width, heads int
	vocab        int
	logits       int     // rows of logits
	states       int     // elements of an update
	least        float64 // seconds that a measurement lasts at least
	small, large model
}

// model is a GPT-2 and what it is trained on.
type model struct {
	layers, width, heads, vocab, sequence, batch, steps int
}

// real are those of GPT-2 (Radford et al. 2019, table 2) at 1024 tokens.
var real = sizes{
	gemm: 8192, copied: 1 << 30, rows: 16 << 10, width: 768, heads: 12, vocab: 50257, logits: 8 << 10, states: 124 << 20, least: 0.05,
	small: model{12, 768, 12, 50257, 1024, 32, 10}, large: model{48, 1600, 25, 50257, 1024, 8, 5},
}

// toy are for the emulator.
var toy = sizes{
	gemm: 32, copied: 1 << 12, rows: 32, width: 64, heads: 2, vocab: 61, logits: 8, states: 1 << 10, least: 1e-6,
	small: model{2, 32, 2, 300, 16, 2, 3}, large: model{3, 48, 3, 300, 16, 2, 3},
}
