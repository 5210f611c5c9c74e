package train

import (
	"time"

	"triax/comm"
)

// jitter delays messages by up to two milliseconds, each pair and tag differently, so that they overtake one another.
func jitter(from, to int, tag comm.Tag) time.Duration {
	h := uint32(from*31+to*17+tag.Micro*7+tag.Stage*13+int(tag.Kind)*3) * 2654435761
	return time.Duration(h>>21) * time.Microsecond
}
