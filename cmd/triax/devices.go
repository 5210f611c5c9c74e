package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"triax/cuda/cubin"
	"triax/cuda/driver"
	"triax/cuda/nccl"
	"triax/cuda/nvml"
	"triax/launch"
	"triax/monitor"
)

// look asks the driver what is in this machine.
func look() (nvml.Machine, []nvml.Usage, error) {
	l, err := nvml.Open("")
	if err != nil {
		return nvml.Machine{}, nil, err
	}
	defer l.Close()
	m, err := l.Machine()
	if err != nil {
		return m, nil, err
	}
	used, err := l.Usage()
	return m, used, err
}

// machineText says which GPUs there are, or why there are none.
func machineText(m nvml.Machine, used []nvml.Usage, err error) string {
	var b strings.Builder
	switch {
	case errors.Is(err, driver.ErrAbsent):
		fmt.Fprintf(&b, "GPUs: none. NVIDIA's driver is not installed here (%v).\nRuns use the processor.\n", err)
		return b.String()
	case errors.Is(err, driver.ErrNoDevice):
		fmt.Fprintf(&b, "GPUs: none. NVIDIA's library is here, but no device behind it (%v).\nIn a container, start it with its devices (--gpus all); on the host, load the driver.\nRuns use the processor.\n", err)
		return b.String()
	case err != nil && len(m.Devices) == 0:
		fmt.Fprintf(&b, "GPUs: NVIDIA's driver does not say: %v\nRuns use the processor.\n", err)
		return b.String()
	}
	fmt.Fprintf(&b, "GPUs: %d\n%v", len(m.Devices), m)
	for _, u := range used {
		fmt.Fprintf(&b, "  %d  draws %.0f W", u.Device, u.Watts)
		if u.Counted {
			fmt.Fprintf(&b, ", has used %.1f MJ since the driver was loaded", u.Joules/1e6)
		}
		b.WriteByte('\n')
	}
	if err != nil {
		fmt.Fprintf(&b, "power: %v\n", err)
	}
	section, err := m.Section()
	if err != nil {
		fmt.Fprintf(&b, "\nno [cluster] section for the planner: %v\n", err)
		return b.String()
	}
	fmt.Fprintf(&b, "\nfor the planner:\n\n%s", section)
	return b.String()
}

// librariesText says which of NVIDIA's libraries a run would use, or why it cannot.
func librariesText() string {
	where := driver.Find()
	var b strings.Builder
	b.WriteString("libraries:\n")
	if d, err := driver.Load(where.Driver); err != nil {
		fmt.Fprintf(&b, "  driver    %v\n", short(err))
	} else {
		fmt.Fprintf(&b, "  driver    %v, %s\n", d.Version, d.Path)
	}
	if c, err := driver.LoadCompiler(where.Compiler); err != nil {
		fmt.Fprintf(&b, "  compiler  %v\n", short(err))
	} else {
		fmt.Fprintf(&b, "  compiler  %v, %s\n", c.Version, c.Path)
	}
	if l, err := driver.LoadBLAS(where.BLAS); err != nil {
		fmt.Fprintf(&b, "  blas      %v\n", short(err))
	} else {
		fmt.Fprintf(&b, "  blas      %d, %s\n", l.Version, l.Path)
	}
	if l, err := nccl.Load(where.NCCL); err != nil {
		fmt.Fprintf(&b, "  nccl      %v\n", short(err))
	} else {
		fmt.Fprintf(&b, "  nccl      %v, %s\n", l.Version, l.Path)
	}
	return b.String()
}

// short leaves out the list of what was tried.
func short(err error) error {
	if errors.Is(err, driver.ErrAbsent) {
		return driver.ErrAbsent
	}
	return err
}

// onDevices says which device each rank of the first host would have on a machine like this one; nothing where there is none.
func onDevices(p launch.Placement, m nvml.Machine) string {
	if len(m.Devices) == 0 {
		return ""
	}
	var ranks []int
	for r, host := range p.Hosts {
		if host == p.Hosts[0] {
			ranks = append(ranks, r)
		}
	}
	at, err := launch.OnDevices(p.Mesh, ranks, m.Islands())
	if err != nil {
		return fmt.Sprintf("warning: on the GPUs of this machine: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("GPUs of a machine like this one:")
	for i, r := range ranks {
		fmt.Fprintf(&b, "  rank %d on %d", r, at[i])
	}
	b.WriteByte('\n')
	return b.String()
}

// doctorKernels compiles all kernels, and shows the table of what they ask for.
func doctorKernels(w io.Writer, archs []string) error {
	c, err := driver.LoadCompiler(driver.Find().Compiler)
	if err != nil {
		return fmt.Errorf("--kernels: %w", err)
	}
	start := time.Now()
	all, err := cubin.Compile(c, archs)
	if err != nil {
		return fmt.Errorf("--kernels: %w", err)
	}
	n := 0
	for _, m := range all {
		n += len(m.Kernels)
	}
	fmt.Fprintf(w, "NVRTC %v, %s: %d kernels in %d modules, %.1f s\n\n%s", c.Version, c.Path, n, len(all), time.Since(start).Seconds(), cubin.Report(all))
	return nil
}

// deviceUsage reads the devices' power and energy; nil where there are no devices. The library stays open as long as the program runs.
func deviceUsage() (func() ([]monitor.Usage, error), error) {
	l, err := nvml.Open("")
	if errors.Is(err, driver.ErrAbsent) || errors.Is(err, driver.ErrNoDevice) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return func() ([]monitor.Usage, error) {
		all, err := l.Usage()
		out := make([]monitor.Usage, len(all))
		for i, u := range all {
			out[i] = monitor.Usage(u)
		}
		return out, err
	}, nil
}
