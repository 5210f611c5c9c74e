package nn

// MACs is the multiply-adds of a forward pass per token: of one block, and of the output matrix. A backward pass takes twice as
// many. Attention counts the causal half of the scores: S/2 keys a query, for scores and for their product with the
// values (Narayanan et al. 2021, appendix, with the causal mask used).
func MACs(c Config) (block, head float64) {
	d, f, s := float64(c.Width), float64(c.Hidden), float64(c.Sequence)
	q, kv := float64(c.Heads*c.HeadDim), float64(c.KVHeads*c.HeadDim)
	matrices := 2.0
	if c.Family == Llama {
		matrices = 3
	}
	return d*(2*q+2*kv) + s*q + matrices*d*f, d * float64(c.Vocab)
}
