package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"triax/configs"
	"triax/cuda"
	"triax/cuda/driver"
	"triax/launch"
	"triax/tensor"
	"triax/train"
)

// openDevices opens the NVIDIA devices that a configuration asks for, before anything else is done: one for each rank of this process. closed gives
// them back after the run. Where the processor computes it does nothing.
func openDevices(cfg *configs.Config, opts *train.Options, p launch.Place) (closed func(), err error) {
	if cfg.Train.Device != configs.DeviceCUDA {
		return func() {}, nil
	}
	m, infos, err := openMachine()
	if err != nil {
		return nil, noDevice(err)
	}
	ordinals, err := ordinalsOf(cfg, opts, p, infos)
	if err != nil {
		return nil, err
	}
	float := tensor.F32
	if cfg.Train.Precision == configs.PrecisionBF16 {
		float = tensor.BF16
	}
	var all []*cuda.Device
	closed = func() {
		for _, d := range all {
			d.Close()
		}
	}
	for _, ordinal := range ordinals {
		if head, most := configs.Resolved(cfg).Model.HeadDim, cuda.Heads(infos[ordinal]); head > most {
			closed()
			return nil, configs.Problems{{
				Field: "model.head_dim", Value: fmt.Sprint(head), Rule: fmt.Sprintf("%v has shared memory for heads of up to %d", infos[ordinal], most), Hint: fmt.Sprintf("use %d or less", most),
			}}
		}
		d, err := m.Device(cuda.Options{Ordinal: ordinal, Float: float})
		if err != nil {
			closed()
			return nil, err
		}
		all = append(all, d)
	}
	opts.Open = func(rank int) tensor.Device {
		if opts.World != nil {
			return kept{all[0]}
		}
		return all[rank]
	}
	return closed, nil
}

// openMachine opens NVIDIA's libraries; what they compile is kept in the user's cache.
func openMachine() (*cuda.Machine, []driver.Info, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, fmt.Errorf("cuda: a folder for compiled kernels: %w", err)
	}
	m, err := cuda.Open(driver.Find(), filepath.Join(cache, "triax", "kernels"))
	if err != nil {
		return nil, nil, err
	}
	infos, err := m.Devices()
	return m, infos, err
}

// noDevice says which of three states a machine without a usable device is in.
func noDevice(err error) error {
	refuse := func(rule, hint string) error {
		return configs.Problems{{Field: "train.device", Value: `"cuda"`, Rule: fmt.Sprintf("%s (%v)", rule, err), Hint: hint}}
	}
	var library *driver.Error
	switch {
	case errors.Is(err, driver.ErrNoDevice):
		return refuse("NVIDIA's driver is here, but no device behind it", `in a container, start it with its devices (--gpus all); or use "float32", the processor`)
	case errors.Is(err, driver.ErrAbsent):
		return refuse("a library of NVIDIA's is not installed here", `install it, or name its file (TRIAX_LIBCUDA, TRIAX_LIBNVRTC, TRIAX_LIBCUBLASLT); or use "float32", the processor`)
	case errors.As(err, &library):
		return refuse("NVIDIA's library refuses", `see triax doctor; or use "float32", the processor`)
	}
	return err
}

// ordinalsOf are the devices of this process's ranks.
func ordinalsOf(cfg *configs.Config, opts *train.Options, p launch.Place, infos []driver.Info) ([]int, error) {
	if opts.World != nil {
		local := max(0, p.Local)
		if p.Local < 0 && p.Size > 1 {
			return nil, fmt.Errorf("train.device = %q: %s does not say which of this host's processes this one is, so it cannot choose a device; set TRIAX_LOCAL_RANK", cfg.Train.Device, p)
		}
		if local >= len(infos) {
			return nil, configs.Problems{{
				Field: "train.device", Value: `"cuda"`, Rule: fmt.Sprintf("this is process %d of its host, which has %d devices; a process has one of its own", local+1, len(infos)),
				Hint: fmt.Sprintf("start %d processes a host", len(infos)),
			}}
		}
		return []int{local}, nil
	}
	n := cfg.Mesh.World()
	if n > len(infos) {
		return nil, configs.Problems{{
			Field: "mesh", Value: fmt.Sprintf("%d ranks", n), Rule: fmt.Sprintf("this machine has %d NVIDIA devices, and each rank has one of its own", len(infos)),
			Hint: fmt.Sprintf(`use a mesh of %d, or train.device = "float32"`, len(infos)),
		}}
	}
	ordinals := make([]int, n)
	for i := range ordinals {
		ordinals[i] = i
	}
	return ordinals, nil
}
