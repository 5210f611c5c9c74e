package cp

import (
	"triax/comm"
	"triax/nn"
)

// Kit makes another kit's layers, with attention over the ring of a context group.
type Kit struct {
	nn.Kit
	Group  *comm.Group
	Wire   comm.Transport
	Ledger *comm.Ledger
}

// Core is the ring, or the kit's own where the group is one rank.
func (k Kit) Core() nn.Core {
	if k.Group.Size() == 1 {
		return k.Kit.Core()
	}
	ranks, c, place := k.Group.Ranks(), k.Group.Size(), k.Group.Place()
	return &ring{
		c: c, place: place, next: ranks[(place+1)%c], prev: ranks[(place+c-1)%c],
		wire: k.Wire, ledger: k.Ledger,
	}
}
