//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"triax/cuda/driver"
)

// wiring is what the ready-made machines leave out: links and buses.
type wiring struct {
	links  int // NVLinks a device
	peers  func(i, j int) bool
	direct bool // links lead to devices, not to switches
	bus    func(i, j int) nvml.GpuTopologyLevel
}

// switched is a machine whose devices are all joined through switches.
func switched(links int) wiring {
	return wiring{links: links, peers: func(_, _ int) bool { return true }, bus: func(i, j int) nvml.GpuTopologyLevel {
		if i/4 == j/4 {
			return nvml.TOPOLOGY_NODE
		}
		return nvml.TOPOLOGY_SYSTEM
	}}
}

func busID(i int) (b [32]int8) {
	for k, c := range fmt.Sprintf("00000000:%02X:00.0", i+16) {
		b[k] = int8(c)
	}
	return b
}

func wired(s *server.Server, w wiring) *server.Server {
	at := map[nvml.Device]int{}
	for i, d := range s.Devices {
		at[d] = i
	}
	for i, handle := range s.Devices {
		d := handle.(*server.Device)
		var ends []int
		for j := range s.Devices {
			if i != j && w.peers(i, j) {
				ends = append(ends, j)
			}
		}
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{BusId: busID(i)}, nvml.SUCCESS }
		d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link >= w.links {
				return 0, nvml.ERROR_INVALID_ARGUMENT
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		d.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
			if w.direct {
				return nvml.PciInfo{BusId: busID(ends[link%len(ends)])}, nvml.SUCCESS
			}
			return nvml.PciInfo{BusId: busID(100 + link)}, nvml.SUCCESS
		}
		d.GetP2PStatusFunc = func(o nvml.Device, what nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
			if what == nvml.P2P_CAPS_INDEX_NVLINK && w.links > 0 && w.peers(i, at[o]) {
				return nvml.P2P_STATUS_OK, nvml.SUCCESS
			}
			return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
		}
		d.GetTopologyCommonAncestorFunc = func(o nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) { return w.bus(i, at[o]), nvml.SUCCESS }
		d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 700000, nvml.SUCCESS }
		d.GetMaxPcieLinkGenerationFunc = func() (int, nvml.Return) { return 4, nvml.SUCCESS }
		d.GetMaxPcieLinkWidthFunc = func() (int, nvml.Return) { return 16, nvml.SUCCESS }
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return uint32(100000 + i), nvml.SUCCESS }
		d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return uint64(5000 * (i + 1)), nvml.SUCCESS }
	}
	return s
}

func machineOf(t *testing.T, s *server.Server) Machine {
	t.Helper()
	l, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDGX: what NVIDIA's own stand-ins for its machines say arrives.
func TestDGX(t *testing.T) {
	for _, c := range []struct {
		server *server.Server
		links  int
		preset string
		rate   string
	}{
		{dgxa100.New(), 12, "a100-40", "node_bandwidth_gbs = 300 "},
		{dgxh100.New(), 18, "h100-sxm", "node_bandwidth_gbs = 450 "},
		{dgxh200.New(), 18, "h200", "node_bandwidth_gbs = 450 "},
	} {
		m := machineOf(t, wired(c.server, switched(c.links)))
		if len(m.Devices) != 8 || len(m.Islands()) != 1 || m.Devices[0].Preset() != c.preset {
			t.Errorf("%s: %d devices, islands %v, preset %q", c.preset, len(m.Devices), m.Islands(), m.Devices[0].Preset())
		}
		if p := m.Paths[1][6]; p.Links != c.links || p.Bus != System {
			t.Errorf("%s: devices 1 and 6 are joined by %+v", c.preset, p)
		}
		section, err := m.Section()
		if err != nil || !strings.Contains(section, c.rate) || !strings.Contains(section, "gpus_per_node = 8") {
			t.Errorf("%s: %v\n%s", c.preset, err, section)
		}
		if d := m.Devices[2]; d.PCI != "0000:12:00.0" || d.Watts != 700 || d.Memory < 40e9 {
			t.Errorf("%s: %+v", c.preset, d)
		}
	}
}

// TestPairs: bridges that join devices two by two make islands of two, and the section has three links.
func TestPairs(t *testing.T) {
	pairs := wiring{links: 12, direct: true, peers: func(i, j int) bool { return i != j && i%4 == j%4 }, bus: func(_, _ int) nvml.GpuTopologyLevel { return nvml.TOPOLOGY_HOSTBRIDGE }}
	m := machineOf(t, wired(dgxa100.New(), pairs))
	if got := fmt.Sprint(m.Islands()); got != "[[0 4] [1 5] [2 6] [3 7]]" {
		t.Errorf("islands %v", got)
	}
	if m.Paths[0][4].Links != 12 || m.Paths[0][1] != (Path{0, HostBridge}) {
		t.Errorf("paths %v", m.Paths[0])
	}
	section, err := m.Section()
	if err != nil || strings.Count(section, "[[cluster.link]]") != 3 || !strings.Contains(section, "gpus = 2\nbandwidth_gbs = 300 ") {
		t.Errorf("%v\n%s", err, section)
	}
	for _, want := range []string{"  NV12", "   PHB", "joined by NVLink: [[0 4] [1 5] [2 6] [3 7]]"} {
		if !strings.Contains(m.String(), want) {
			t.Errorf("no %q in\n%v", want, m)
		}
	}
}

// TestNothing: the states in which there is no Library, and that nothing but Init has then been called: a stand-in's other functions are nil and panic.
func TestNothing(t *testing.T) {
	for r, want := range map[nvml.Return]error{
		nvml.ERROR_LIBRARY_NOT_FOUND: driver.ErrAbsent, nvml.ERROR_DRIVER_NOT_LOADED: driver.ErrNoDevice, nvml.ERROR_NO_PERMISSION: driver.ErrNoDevice, nvml.ERROR_UNKNOWN: nil,
	} {
		s := &server.Server{}
		s.InitFunc = func() nvml.Return { return r }
		l, err := open(s)
		if l != nil || err == nil {
			t.Fatalf("%d: %v, %v", r, l, err)
		}
		if own := new(driver.Error); want == nil && !errors.As(err, &own) || want != nil && !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", r, err, want)
		}
	}
	empty := dgxh200.NewWithGPUs()
	if _, err := open(empty); !errors.Is(err, driver.ErrNoDevice) {
		t.Errorf("no devices: %v", err)
	}
	if _, err := Open("/nowhere/libnvidia-ml.so.1"); !errors.Is(err, driver.ErrAbsent) {
		t.Errorf("a library that is not there: %v", err)
	}
}

// TestUsage: milliwatts and millijoules become watts and joules; a device without a counter says so; a failure is an error.
func TestUsage(t *testing.T) {
	s := wired(dgxh200.New(), switched(18))
	l, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	first := s.Devices[0].(*server.Device)
	first.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	all, err := l.Usage()
	if err != nil || len(all) != 8 || all[0].Counted || !all[3].Counted || all[3].Joules != 20 || all[3].Watts != 100.003 {
		t.Errorf("%v: %+v", err, all)
	}
	first.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
	if own := new(driver.Error); true {
		if _, err := l.Usage(); !errors.As(err, &own) || own.Call != "nvmlDeviceGetPowerUsage(0)" {
			t.Errorf("a lost device: %v", err)
		}
	}
}

// TestUnlike: a machine of different devices, or of one without a data sheet, has no section.
func TestUnlike(t *testing.T) {
	m := machineOf(t, wired(dgxh200.New(), switched(18)))
	m.Devices[3].Name = "NVIDIA T400"
	if _, err := m.Section(); err == nil || !strings.Contains(err.Error(), "device 3 is NVIDIA T400") {
		t.Errorf("different devices: %v", err)
	}
	for i := range m.Devices {
		m.Devices[i].Name = "NVIDIA T400"
	}
	if _, err := m.Section(); err == nil || !strings.Contains(err.Error(), "no data sheet of NVIDIA T400") {
		t.Errorf("no sheet: %v", err)
	}
}
