//go:build cgo && linux

package mpi

import (
	"context"
	"time"
)

// RollCall asks ranks what they are doing, and returns what those say that answer in time. The engine of a process answers, so one that
// computes, or waits for others, does; one that is killed, stopped or cut off does not.
func (w *World) RollCall(ranks []int, wait time.Duration) map[int]string {
	w.mu.Lock()
	w.turn++
	turn := w.turn
	w.answers = map[int]string{}
	w.mu.Unlock()
	w.eng.do(func() {
		for _, r := range ranks {
			w.tell(r, note{Kind: noteRollCall, Turn: turn}, func(error) {})
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_ = w.until(ctx, func() bool { return len(w.answers) == len(ranks) }) // who is late is who is missing
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.answers
	w.answers = nil
	w.turn++
	return heard
}

// Agree returns rank 0's text on all ranks; at most about 900 bytes.
func (w *World) Agree(ctx context.Context, text string) (string, error) {
	if w.rank == 0 {
		w.eng.do(func() {
			for r := 1; r < w.size; r++ {
				w.tell(r, note{Kind: noteText, Text: text}, func(error) {})
			}
		})
		return text, nil
	}
	err := w.until(ctx, func() bool {
		if len(w.texts) == 0 {
			return false
		}
		text, w.texts = w.texts[0], w.texts[1:]
		return true
	})
	return text, err
}
