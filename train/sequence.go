package train

import (
	"context"
	"fmt"
	"slices"

	"triax/comm"
	"triax/tensor"
)

// sameSequences is a check of [train] verify: all members of every group have called the same collectives in the same order since
// the start. It compares digests over the groups themselves.
func (w *Worker) sameSequences(ctx context.Context) error {
	for _, s := range w.recorder.Sequences() { // before this check's own calls
		g := w.groups.named[s.Group]
		if g == nil || g.Size() == 1 {
			continue
		}
		if err := w.sameDigest(ctx, g, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) sameDigest(ctx context.Context, g *comm.Group, s comm.Sequence) error {
	mine := s.Digest()
	n := len(mine)
	heap := w.dev.Heap()
	src, dst := heap.New(tensor.Workspace, tensor.F64, n), heap.New(tensor.Workspace, tensor.F64, n*g.Size())
	defer src.Release()
	defer dst.Release()
	w.dev.Upload(src, mine)
	if err := g.AllGather(ctx, w.dev, dst, src); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	all := make([]float64, dst.Len())
	w.dev.Download(all, dst)
	for place, rank := range g.Ranks() {
		if !slices.Equal(all[place*n:(place+1)*n], all[:n]) {
			return fmt.Errorf("verify: group %s: rank %d has called other collectives than rank %d; the last ones of rank %d:\n%v",
				s.Group, rank, g.Ranks()[0], w.wire.Rank(), w.recorder)
		}
	}
	return nil
}
