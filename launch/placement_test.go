package launch

import (
	"strings"
	"testing"

	"triax/mesh"
)

func TestPlacement(t *testing.T) {
	grid := func(order ...mesh.Axis) mesh.Mesh {
		m, err := mesh.New(order, map[mesh.Axis]int{mesh.PP: 2, mesh.DP: 2, mesh.TP: 2})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	good := Even(grid(mesh.PP, mesh.DP, mesh.TP), 2)
	if s := good.String(); len(good.Warnings()) > 0 || good.Spread(mesh.TP) != 1 || good.Spread(mesh.DP) != 2 || !strings.Contains(s, "8 ranks on 4 hosts") {
		t.Error(s)
	}
	if bad := Even(grid(mesh.TP, mesh.PP, mesh.DP), 2); len(bad.Warnings()) != 1 || !strings.Contains(bad.String(), "warning: tp crosses hosts") {
		t.Error(bad)
	}
}

func TestArgs(t *testing.T) {
	for _, c := range []struct {
		about, want string
	}{
		{"mpirun (Open MPI) 4.1.4", "--bind-to none -x TRIAX_LAUNCH --allow-run-as-root --hostfile hosts -n 4 triax train"},
		{"HYDRA build details:", "-f hosts -n 4 triax train"},
	} {
		s := Starter{Family: family(c.about)}
		if got := strings.Join(s.Args(4, "hosts", true, true, []string{"triax", "train"}), " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
