package nvml

// Usage is what a device draws and has used.
type Usage struct {
	Device int
	Name   string
	Watts  float64
	// Joules is the energy since the driver was loaded; Counted is false on devices that do not count it.
	Joules  float64
	Counted bool
}
