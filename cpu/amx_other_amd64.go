//go:build amd64 && !linux

package cpu

// allowTiles: other systems are not asked.
func allowTiles() bool { return false }
