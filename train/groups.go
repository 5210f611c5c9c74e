package train

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/mesh"
	"triax/nn"
	"triax/zero"
)

// groups are the communicators of one rank. All ranks make theirs in the one order written here, up front:
// a group made late or in another order on some rank is a deadlock in waiting.
type groups struct {
	world, shards, replicas, data, ep, cp, tp *comm.Group
	expertShards, expertData                  *comm.Group
	tied                                      *comm.Group // nil where this rank holds no copy of a tied table
	named                                     map[string]*comm.Group
	copies                                    map[int]*comm.Group // runs of tensor ranks that hold the same key/value heads, by size
}

func openGroups(ctx context.Context, m mesh.Mesh, wire comm.Transport, ledger *comm.Ledger, tied bool, kvCopies int) (*groups, error) {
	rank, c := wire.Rank(), m.Coord(wire.Rank())
	g := &groups{copies: map[int]*comm.Group{}, named: map[string]*comm.Group{}}
	join := func(into **comm.Group, axis string, ranks []int) error {
		var err error
		name := fmt.Sprintf("%s %v", axis, ranks)
		*into, err = comm.NewGroup(ctx, wire, name, axis, ranks, ledger)
		g.named[name] = *into
		return err
	}
	for _, a := range []struct {
		into **comm.Group
		name string
		axes []mesh.Axis
	}{
		{&g.world, "world", mesh.DefaultOrder},
		{&g.shards, "dp", []mesh.Axis{mesh.DP, mesh.EP, mesh.CP}},
		{&g.replicas, "dp_replicate", []mesh.Axis{mesh.Replicate}},
		{&g.data, "data", []mesh.Axis{mesh.Replicate, mesh.DP, mesh.EP, mesh.CP}},
		{&g.expertShards, "dp_expert", []mesh.Axis{mesh.DP, mesh.CP}},
		{&g.expertData, "data_expert", []mesh.Axis{mesh.Replicate, mesh.DP, mesh.CP}},
		{&g.ep, "ep", []mesh.Axis{mesh.EP}},
		{&g.cp, "cp", []mesh.Axis{mesh.CP}},
		{&g.tp, "tp", []mesh.Axis{mesh.TP}},
	} {
		if err := join(a.into, a.name, m.Peers(rank, a.axes...)); err != nil {
			return nil, err
		}
	}
	if kvCopies > 1 {
		first := c[mesh.TP] / kvCopies * kvCopies
		var kv *comm.Group
		if err := join(&kv, "kv", g.tp.Ranks()[first:first+kvCopies]); err != nil {
			return nil, err
		}
		g.copies[kvCopies] = kv
	}
	if last := m.Degree(mesh.PP) - 1; tied && last > 0 && (c[mesh.PP] == 0 || c[mesh.PP] == last) {
		line := m.Peers(rank, mesh.PP)
		if err := join(&g.tied, "tied", []int{line[0], line[last]}); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// forZero hands the groups to the optimizer.
func (g *groups) forZero() zero.Groups {
	return zero.Groups{
		Shards: g.shards, Replicas: g.replicas, Data: g.data, World: g.world, Tied: g.tied,
		ExpertShards: g.expertShards, ExpertData: g.expertData,
		Span: func(s nn.Span) *comm.Group {
			switch {
			case s.Axis == mesh.TP && s.Size == 0:
				return g.tp
			case s.Axis == mesh.TP && g.copies[s.Size] != nil:
				return g.copies[s.Size]
			}
			panic(fmt.Sprintf("train: no group for a sum over %v in runs of %d", s.Axis, s.Size))
		},
	}
}
