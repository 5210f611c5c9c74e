package optim

// ClipFactor is what gradients are multiplied with so that their global norm stays within bound: bound/norm
// where the norm exceeds it, else exactly 1 (Pascanu et al. 2013, Algorithm 1). A bound of 0 never clips.
// No epsilon is added: after clipping the norm is the bound itself.
func ClipFactor(norm, bound float64) float64 {
	if bound > 0 && norm > bound {
		return bound / norm
	}
	return 1
}
