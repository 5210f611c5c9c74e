//go:build cgo && linux

package nvml

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Machine describes all devices and how they are joined. What a device does not support is left at its zero value; what fails is an error.
func (l *Library) Machine() (Machine, error) {
	var m Machine
	var r nvml.Return
	if m.Driver, r = l.api.SystemGetDriverVersion(); r != nvml.SUCCESS {
		return m, l.failed("nvmlSystemGetDriverVersion", r)
	}
	version, r := l.api.SystemGetCudaDriverVersion()
	if r != nvml.SUCCESS {
		return m, l.failed("nvmlSystemGetCudaDriverVersion_v2", r)
	}
	m.CUDA = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	peers := make([]map[string]int, len(l.devices))
	for i, d := range l.devices {
		device, remote, err := l.device(i, d)
		if err != nil {
			return m, err
		}
		m.Devices, peers[i] = append(m.Devices, device), remote
	}
	for i := range l.devices {
		m.Paths = append(m.Paths, make([]Path, len(l.devices)))
		for j := range l.devices {
			if i == j {
				continue
			}
			var err error
			if m.Paths[i][j], err = l.path(m, i, j, peers[i]); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

// device describes one device, and counts its NVLinks by the PCI address at their other end.
func (l *Library) device(i int, d nvml.Device) (out Device, remote map[string]int, err error) {
	// must is for what every device has, may for what some have not.
	must := func(call string, r nvml.Return) {
		if err == nil && r != nvml.SUCCESS {
			err = l.failed(fmt.Sprintf("%s(%d)", call, i), r)
		}
	}
	may := func(call string, r nvml.Return) bool {
		switch r {
		case nvml.SUCCESS:
			return true
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND:
			return false
		}
		must(call, r)
		return false
	}
	var r nvml.Return
	out.Name, r = d.GetName()
	must("nvmlDeviceGetName", r)
	out.UUID, r = d.GetUUID()
	must("nvmlDeviceGetUUID", r)
	memory, r := d.GetMemoryInfo()
	must("nvmlDeviceGetMemoryInfo", r)
	out.Memory = int64(memory.Total)
	out.Major, out.Minor, r = d.GetCudaComputeCapability()
	must("nvmlDeviceGetCudaComputeCapability", r)
	if pci, r := d.GetPciInfo(); may("nvmlDeviceGetPciInfo_v3", r) {
		out.PCI = address(pci)
	}
	if mode, _, r := d.GetMigMode(); may("nvmlDeviceGetMigMode", r) {
		out.MIG = mode == nvml.DEVICE_MIG_ENABLE
	}
	if limit, r := d.GetEnforcedPowerLimit(); may("nvmlDeviceGetEnforcedPowerLimit", r) {
		out.Watts = float64(limit) / 1e3
	}
	if generation, r := d.GetMaxPcieLinkGeneration(); may("nvmlDeviceGetMaxPcieLinkGeneration", r) {
		out.Generation = generation
	}
	if lanes, r := d.GetMaxPcieLinkWidth(); may("nvmlDeviceGetMaxPcieLinkWidth", r) {
		out.Lanes = lanes
	}
	remote = map[string]int{}
	for link := range nvml.NVLINK_MAX_LINKS {
		state, r := d.GetNvLinkState(link)
		if r == nvml.ERROR_INVALID_ARGUMENT || r == nvml.ERROR_NOT_SUPPORTED {
			break // no more links
		}
		must("nvmlDeviceGetNvLinkState", r)
		if state != nvml.FEATURE_ENABLED {
			continue
		}
		out.Links++
		if far, r := d.GetNvLinkRemotePciInfo(link); may("nvmlDeviceGetNvLinkRemotePciInfo_v2", r) {
			remote[address(far)]++
		}
	}
	return out, remote, err
}

// path is how two devices are joined. Over NVSwitch, no link leads to the other device itself, and all do.
func (l *Library) path(m Machine, i, j int, remote map[string]int) (Path, error) {
	p := Path{Bus: Unknown}
	status, r := l.devices[i].GetP2PStatus(l.devices[j], nvml.P2P_CAPS_INDEX_NVLINK)
	if r != nvml.SUCCESS && r != nvml.ERROR_NOT_SUPPORTED {
		return p, l.failed(fmt.Sprintf("nvmlDeviceGetP2PStatus(%d, %d)", i, j), r)
	}
	if r == nvml.SUCCESS && status == nvml.P2P_STATUS_OK {
		p.Links = m.Devices[i].Links
		if direct := remote[m.Devices[j].PCI]; direct > 0 && m.Devices[j].PCI != "" {
			p.Links = direct
		}
	}
	level, r := l.devices[i].GetTopologyCommonAncestor(l.devices[j])
	switch r {
	case nvml.SUCCESS:
		p.Bus = Bus(level)
	case nvml.ERROR_NOT_SUPPORTED: // in some virtual machines
	default:
		return p, l.failed(fmt.Sprintf("nvmlDeviceGetTopologyCommonAncestor(%d, %d)", i, j), r)
	}
	return p, nil
}

// address is a PCI address as text: "0000:1b:00.0", with the short domain that other tools print.
func address(p nvml.PciInfo) string {
	text := make([]byte, 0, len(p.BusId))
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	s := strings.ToLower(string(text))
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 {
		s = strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	return s
}
