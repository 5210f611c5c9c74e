// Package nvml asks the NVIDIA driver's management library what is in this machine: devices, how they are joined, the power they draw and the
// energy they have used; and writes the planner's [cluster] section for it.
//
//	Open ──▶ driver.ErrAbsent     no management library on this machine
//	     ├─▶ driver.ErrNoDevice   a library, and no device behind it
//	     └─▶ Library ──▶ Machine ──▶ Islands (devices joined by NVLink), Section (TOML)
//	             └─────▶ Usage: watts and joules, device by device
//
// The binding ends the process when one of its functions is called and the library has not been opened. So a Library exists only
// after it was, and nothing else here calls the binding. Without cgo, or on other systems than Linux, Open says ErrAbsent.
//
// Devices have here the order of the bus, which need not be that of the driver's ordinals: match them by PCI address.
package nvml
