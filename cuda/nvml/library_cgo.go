//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"triax/cuda/driver"
)

// Library is the management library, opened, with at least one device.
type Library struct {
	api     nvml.Interface
	devices []nvml.Device
}

// Open opens the library at a path; "" is the loader's own search for libnvidia-ml.so.1. Errors are driver.ErrAbsent, driver.ErrNoDevice, or a *driver.Error.
func Open(path string) (*Library, error) {
	if path == "" {
		return open(nvml.New())
	}
	return open(nvml.New(nvml.WithLibraryPath(path)))
}

// open initialises a library, or a stand-in for one. Before that, nothing of it may be called, not even to put a status into words.
func open(api nvml.Interface) (*Library, error) {
	switch r := api.Init(); r {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("nvml: libnvidia-ml.so.1: %w", driver.ErrAbsent)
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_GPU_NOT_FOUND:
		return nil, fmt.Errorf("nvml: %w: %s", driver.ErrNoDevice, reasons[r])
	default:
		return nil, &driver.Error{Library: "nvml", Call: "nvmlInit_v2", Code: int(r), Text: "the library does not start"}
	}
	l := &Library{api: api}
	n, r := api.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, errors.Join(l.failed("nvmlDeviceGetCount_v2", r), l.Close())
	}
	if n == 0 {
		return nil, errors.Join(fmt.Errorf("nvml: %w: the driver counts none", driver.ErrNoDevice), l.Close())
	}
	for i := range n {
		d, r := api.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			return nil, errors.Join(l.failed(fmt.Sprintf("nvmlDeviceGetHandleByIndex_v2(%d)", i), r), l.Close())
		}
		l.devices = append(l.devices, d)
	}
	return l, nil
}

var reasons = map[nvml.Return]string{
	nvml.ERROR_DRIVER_NOT_LOADED: "the driver is not loaded",
	nvml.ERROR_NO_PERMISSION:     "this user may not talk to the driver",
	nvml.ERROR_GPU_NOT_FOUND:     "no device has a driver attached",
}

// Close ends the use of the library.
func (l *Library) Close() error { return l.failed("nvmlShutdown", l.api.Shutdown()) }

func (l *Library) failed(call string, r nvml.Return) error {
	if r == nvml.SUCCESS {
		return nil
	}
	return &driver.Error{Library: "nvml", Call: call, Code: int(r), Text: r.Error()}
}

// Usage reads every device's power and energy.
func (l *Library) Usage() ([]Usage, error) {
	all := make([]Usage, len(l.devices))
	for i, d := range l.devices {
		name, r := d.GetName()
		if r != nvml.SUCCESS {
			return nil, l.failed(fmt.Sprintf("nvmlDeviceGetName(%d)", i), r)
		}
		milliwatts, r := d.GetPowerUsage()
		if r != nvml.SUCCESS {
			return nil, l.failed(fmt.Sprintf("nvmlDeviceGetPowerUsage(%d)", i), r)
		}
		all[i] = Usage{Device: i, Name: name, Watts: float64(milliwatts) / 1e3}
		millijoules, r := d.GetTotalEnergyConsumption()
		switch r {
		case nvml.SUCCESS:
			all[i].Joules, all[i].Counted = float64(millijoules)/1e3, true
		case nvml.ERROR_NOT_SUPPORTED: // before Volta
		default:
			return nil, l.failed(fmt.Sprintf("nvmlDeviceGetTotalEnergyConsumption(%d)", i), r)
		}
	}
	return all, nil
}
