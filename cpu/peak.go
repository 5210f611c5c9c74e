package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Peak is the float32 multiply-add rate of some threads at once in GFLOP/s, measured now by loops that do nothing else: the
// limit that a multiplication's rate is a share of. It takes some milliseconds. On a machine shared with others it changes from minute to
// minute, so measure it next to what is compared with it.
func Peak(threads int) float64 {
	flop, loop := peakLoop()
	return peakOf(threads, flop, loop)
}

// PeakBF16 is the same for pairs of bfloat16 added in float32; 0 where HasBF16 is false.
func PeakBF16(threads int) float64 {
	if !HasBF16() {
		return 0
	}
	return peakOf(threads, peakPairsFlop, peakPairs)
}

func peakOf(threads int, flop float64, loop func(rounds int)) float64 {
	const tries, millis = 5, 2
	rounds := int(millis * 200e6 / flop)
	best := 0.0
	for range tries {
		var ready atomic.Int64
		rates := make([]float64, threads)
		var wg sync.WaitGroup
		for w := range threads {
			wg.Go(func() {
				ready.Add(1)
				for ready.Load() < int64(threads) { // to start together
					runtime.Gosched()
				}
				start := time.Now()
				loop(rounds)
				rates[w] = flop * float64(rounds) / time.Since(start).Seconds() / 1e9
			})
		}
		wg.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best
}

// peakPlain is the loop where there are no vector instructions: multiply-adds of eight independent sums.
func peakPlain(rounds int) {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	x := float32(rounds)
	for range rounds {
		s0 += x * s0
		s1 += x * s1
		s2 += x * s2
		s3 += x * s3
		s4 += x * s4
		s5 += x * s5
		s6 += x * s6
		s7 += x * s7
	}
	if s0+s1+s2+s3+s4+s5+s6+s7 != 0 {
		panic("cpu: zero times a number is not zero")
	}
}
