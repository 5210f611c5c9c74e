package mesh

import "fmt"

// Axis is one way of cutting the work over ranks. Axes multiply: the world is their product.
type Axis uint8

const (
	PP        Axis = iota // pipeline: layers cut over stages
	Replicate             // data, outer part of hybrid sharding: ZeRO shards are repeated over it
	DP                    // data: samples cut over replicas; ZeRO shards over it
	EP                    // expert: also cuts samples, and experts over the ranks that hold them
	CP                    // context: the sequence cut over ranks
	TP                    // tensor: matrices cut inside a layer
	NumAxes   = int(TP) + 1
)

var axisNames = [NumAxes]string{"pp", "dp_replicate", "dp", "ep", "cp", "tp"}

// String is the axis's name in configurations: "pp", "dp_replicate", "dp", "ep", "cp" or "tp".
func (a Axis) String() string {
	if int(a) < NumAxes {
		return axisNames[a]
	}
	return fmt.Sprintf("axis(%d)", uint8(a))
}

// ParseAxis reads an axis's name.
func ParseAxis(name string) (Axis, error) {
	for i, n := range axisNames {
		if n == name {
			return Axis(i), nil
		}
	}
	return 0, fmt.Errorf("axis %q: want one of pp, dp_replicate, dp, ep, cp, tp", name)
}

// DefaultOrder lists the axes from slowest to fastest links: tensor peers are adjacent ranks,
// because they talk most (Narayanan et al. 2021, §3.2, takeaway 1).
var DefaultOrder = []Axis{PP, Replicate, DP, EP, CP, TP}
