package cp

import "fmt"

// Stretches are the two numbers of the stretches, of 2c, that a rank of c holds, the earlier one first. With one rank
// both together are the whole sample.
func Stretches(rank, c int) [2]int { return [2]int{rank, 2*c - 1 - rank} }

// Check says whether samples of seq tokens can be cut over c ranks.
func Check(seq, c int) error {
	if c > 1 && seq%(2*c) != 0 {
		return fmt.Errorf("a sequence of %d is not cut into %d stretches; use a multiple of %d", seq, 2*c, 2*c)
	}
	return nil
}
