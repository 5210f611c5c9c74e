package cp

// Stretches are the two numbers of the stretches, of 2c, that a rank of c holds, the earlier one first. With one rank
// both together are the whole sample.
func Stretches(rank, c int) [2]int { return [2]int{rank, 2*c - 1 - rank} }
