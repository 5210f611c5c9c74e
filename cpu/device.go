package cpu

import (
	"fmt"
	"slices"

	"triax/tensor"
)

// Options says how a device is made.
type Options struct {
	Float     tensor.DType // F32 (fast), BF16 (smaller and faster still) or F64 (the oracle that tests compare with)
	Threads   int          // workers, the caller's goroutine included; 0 means 1
	Spin      bool         // waiting workers spin briefly before they park: only when all ranks' threads fit the cores
	Poison    bool         // memory handed out is filled with NaN, see tensor.NewHeap
	ISA       ISA          // instructions to use; "" means the best the processor has
	HugePages bool         // large tensors come from arenas that ask the system for huge pages
	NoTiles   bool         // bfloat16 is multiplied on vectors also where there are tile registers
	BF16      bool         // Gemm of F32 rounds its inputs to bfloat16 and adds in float32: twice the speed, see HasBF16
}

// Device computes on the processor's cores. It implements tensor.Device.
type Device struct {
	tensor.Device
}

// New makes a device. It panics when Float is none of F32, BF16 and F64.
func New(opts Options) *Device {
	switch opts.Float {
	case tensor.F32:
		return &Device{newCore[float32](opts)}
	case tensor.F64:
		return &Device{newCore[float64](opts)}
	case tensor.BF16:
		return &Device{newHalf(opts)}
	}
	panic(fmt.Sprintf("cpu: no kernels for %v", opts.Float))
}

// float is what kernels are written for.
type float interface{ float32 | float64 }

// core is a device of one floating type.
type core[T float] struct {
	opts Options
	heap *tensor.Heap
	team *team
	tile *kernels[T] // nil with plain Go
	gemm *kernels[T] // those of Gemm: tile, or the ones for bfloat16
	rows *rowOps     // nil with plain Go and for float64
	wide []T         // sums of a product whose result is bfloat16
	ops  ops[T]
}

func newCore[T float](opts Options) *core[T] {
	opts.Threads = max(opts.Threads, 1)
	if opts.ISA == "" {
		opts.ISA = Supported()[0]
	}
	if !slices.Contains(Supported(), opts.ISA) {
		panic(fmt.Sprintf("cpu: this processor has no %s; it has %v", opts.ISA, Supported()))
	}
	var source func(tensor.DType, int) any
	if opts.HugePages {
		source = new(arenas).take
	}
	tile := tiling[T](opts.ISA)
	gemm := tile
	if opts.BF16 && opts.Float != tensor.BF16 {
		if gemm = tilingHalves[T](opts.ISA, !opts.NoTiles); gemm == nil {
			panic(fmt.Sprintf("cpu: no multiplication of bfloat16 for %v with %s on this processor", opts.Float, opts.ISA))
		}
	}
	return &core[T]{
		opts: opts,
		heap: tensor.NewHeap(source, opts.Poison),
		team: newTeam(opts.Threads, opts.Spin),
		tile: tile,
		gemm: gemm,
		rows: rowKernels[T](opts.ISA),
	}
}

// ops holds the arguments of the operation in flight, one struct an operation: they live in the device
// so that a call allocates nothing.
type ops[T float] struct {
	copy      copyTask
	zero      zeroTask
	gemm      gemmTask[T]
	tiled     tiledTask[T]
	wide      wideTask
	transpose transposeTask[T]
	map2      mapTask[T]
	addBias   addBiasTask[T]
	biasGrad  biasGradTask[T]
	rowwise   rowwiseTask[T]
	swiglu    swigluTask[T]
	rope      ropeTask[T]
	dropout   dropoutTask[T]
	norm      normTask[T]
	normIn    normInputTask[T]
	normW     normWeightTask[T]
	attention attentionTask[T]
	tiledAt   tiledAttention[T]
	merge     mergeTask[T]
	embed     embedTask[T]
	loss      lossTask[T]
	adamw     adamwTask[T]
	sgd       sgdTask[T]
	squares   squaresTask[T]
}

func (d *core[T]) Name() string {
	if d.opts.BF16 {
		return fmt.Sprintf("cpu %v multiplied as bf16, %s, %d threads", d.opts.Float, d.opts.ISA, d.opts.Threads)
	}
	return fmt.Sprintf("cpu %v, %s, %d threads", d.opts.Float, d.opts.ISA, d.opts.Threads)
}
func (d *core[T]) Float() tensor.DType { return d.opts.Float }
func (d *core[T]) Heap() *tensor.Heap  { return d.heap }
func (d *core[T]) Sync() error         { return nil }
func (d *core[T]) Close()              { d.team.close() }

func (d *core[T]) New(kind tensor.Kind, shape ...int) *tensor.Tensor {
	return d.heap.New(kind, d.opts.Float, shape...)
}

var _ tensor.Device = (*Device)(nil)
