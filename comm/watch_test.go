package comm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm"
	"triax/comm/commtest"
	"triax/tensor"
)

// TestWatched: a call that a peer never joins ends at its limit, and names whom it waits for. The limit is shorter than the in-process transport's own.
func TestWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		play(t, world(t, 3)[:1], func(ctx context.Context, r commtest.Rank) error {
			wire := comm.Watched(r.Wire, 30*time.Second, func(ranks []int) string { return fmt.Sprintf("waits for %v", ranks) })
			g, err := comm.NewGroup(ctx, wire, "all", "dp", []int{2, 0, 1}, nil)
			if err != nil {
				return err
			}
			err = g.AllReduce(ctx, f64(1, 2), comm.Sum)
			if err == nil || !strings.HasSuffix(err.Error(), "not done after 30s (train.timeout): waits for [2 1]") {
				t.Errorf("all-reduce: %v", err)
			}
			_, _, err = wire.Recv(ctx, 1, comm.Tag{}, comm.Spec{DType: tensor.F64, Shape: []int{1}})
			if err == nil || !strings.HasSuffix(err.Error(), "waits for [1]") {
				t.Errorf("recv: %v", err)
			}
			return nil
		})
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
