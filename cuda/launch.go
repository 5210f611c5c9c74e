package cuda

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"triax/cuda/driver"
	"triax/cuda/kernels"
	"triax/tensor"
)

// kernelKey names a kernel compiled for a storage type.
type kernelKey struct {
	name string
	bf16 bool
}

// signatures are what kernels take, by name.
var signatures = sync.OnceValue(func() map[string]kernels.Signature {
	all := map[string]kernels.Signature{}
	for _, s := range kernels.All() {
		all[s.Name] = s
	}
	return all
})

// load compiles all kernels for a storage type, files at once, and loads them.
func (d *Device) load(c *driver.Context, bf16 bool) error {
	names := map[string][]string{}
	for _, s := range signatures() {
		if !bf16 || !kernels.Plain(s.File) {
			names[s.File] = append(names[s.File], s.Name)
		}
	}
	files := slices.Sorted(maps.Keys(names))
	modules := make([][]byte, len(files))
	var all errgroup.Group
	for i, file := range files {
		all.Go(func() (err error) {
			modules[i], err = d.machine.compile(file, bf16, c.Info.Arch())
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i, file := range files {
		shared := 0
		if file == "attention.cu" {
			shared = min(c.Info.SharedLimit, attentionShared)
		}
		found, err := c.Load(modules[i], names[file], shared)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for name, f := range found {
			d.kernels[kernelKey{name, bf16}] = f
		}
	}
	return nil
}

func dim(x int) driver.Dim { return driver.Dim{X: uint32(x), Y: 1, Z: 1} }

// shape is a launch's grid, block, and dynamic shared memory.
type shape struct {
	grid, block driver.Dim
	shared      int
}

// flat launches a kernel that walks n elements by grid-sized strides.
func (d *Device) flat(name string, float tensor.DType, n int, args ...any) {
	d.launch(name, float, shape{dim(min(parts(n, 256), 32*d.info.Multiprocessors)), dim(256), 0}, args...)
}

// warps launches a kernel whose warps take a row each.
func (d *Device) warps(name string, float tensor.DType, rows int, args ...any) {
	d.launch(name, float, shape{dim(parts(rows, 4)), dim(128), 0}, args...)
}

// launch runs the kernel compiled for a storage type. Arguments are packed by what the kernel takes: tensors where it takes pointers, of
// the type pointed to; int, float64 and uint64 for numbers.
func (d *Device) launch(name string, float tensor.DType, s shape, args ...any) {
	sig, ok := signatures()[name]
	if !ok || len(sig.Params) != len(args) {
		panic(fmt.Sprintf("cuda: kernel %s: %d arguments for %v", name, len(args), sig))
	}
	if s.grid.X == 0 || s.grid.Y == 0 || s.grid.Z == 0 {
		return // no work
	}
	bf16 := float == tensor.BF16
	key := kernelKey{name, bf16 && !kernels.Plain(sig.File)}
	var b []byte
	for i, p := range sig.Params {
		b = d.pack(b, sig, p, bf16, args[i])
	}
	if d.launched != nil {
		d.launched(key)
	}
	d.owner.give(func(c *driver.Context) error {
		if err := c.Launch(d.kernels[key], s.grid, s.block, s.shared, b); err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
		return nil
	})
}

// pointee is the type of elements behind a kernel's pointer.
func pointee(name string, bf16 bool) tensor.DType {
	switch name {
	case "i32":
		return tensor.I32
	case "double":
		return tensor.F64
	case "bf16":
		return tensor.BF16
	case "real":
		if bf16 {
			return tensor.BF16
		}
	}
	return tensor.F32
}

func (d *Device) pack(b []byte, sig kernels.Signature, p kernels.Param, bf16 bool, arg any) []byte {
	wrong := func() { panic(fmt.Sprintf("cuda: %v: %v for %s", sig, arg, p.Name)) }
	if p.Pointer {
		t, ok := arg.(*tensor.Tensor)
		if !ok {
			wrong()
		}
		var at driver.Pointer
		if t != nil {
			if t.DType != pointee(p.Type, bf16) {
				wrong()
			}
			at = d.on(sig.Name, t)
		}
		return binary.LittleEndian.AppendUint64(aligned(b, 8), uint64(at))
	}
	switch v := arg.(type) {
	case int:
		switch p.Type {
		case "i64":
			return binary.LittleEndian.AppendUint64(aligned(b, 8), uint64(v))
		case "i32":
			if v == int(int32(v)) {
				return binary.LittleEndian.AppendUint32(aligned(b, 4), uint32(v))
			}
		}
	case uint64:
		if p.Type == "u64" {
			return binary.LittleEndian.AppendUint64(aligned(b, 8), v)
		}
	case float64:
		if p.Type == "float" {
			return binary.LittleEndian.AppendUint32(aligned(b, 4), math.Float32bits(float32(v)))
		}
	case attend:
		if p.Type == "attend" {
			return append(aligned(b, 8), v...)
		}
	}
	wrong()
	return nil
}

// aligned pads to a multiple of n bytes.
func aligned(b []byte, n int) []byte {
	for len(b)%n != 0 {
		b = append(b, 0)
	}
	return b
}
