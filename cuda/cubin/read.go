package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Kernel is what one kernel of a module asks for.
type Kernel struct {
	Name      string
	Registers int // of a thread
	Stack     int // bytes of local memory of a thread
	Shared    int // bytes of static shared memory of a block
	Code      int // bytes
	// Of the assembler's log: bytes that a thread writes to and reads from memory for want of registers.
	SpillStores, SpillLoads int
}

// Attributes of the .nv.info section that matter here, by the names that NVIDIA's own tools print.
const (
	formatSized  = 4 // attribute with a size and a value, EIFMT_SVAL
	frameSize    = 0x11
	registerSize = 0x2f // EIATTR_REGCOUNT
)

// reserved is the shared memory of a block that the system keeps for itself on architectures from sm_90 on; modules count it.
const reserved = 1024

// Read lists a module's kernels by name.
func Read(image []byte) ([]Kernel, error) {
	if len(image) < 64 {
		return nil, fmt.Errorf("module: %d bytes", len(image))
	}
	standard := slices.Clone(image)
	binary.LittleEndian.PutUint32(standard[20:], uint32(elf.EV_CURRENT)) // NVIDIA writes the CUDA version there, which the reader refuses
	f, err := elf.NewFile(bytes.NewReader(standard))
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}
	if f.Machine != 190 || f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("module: for machine %d, %v; want 190 (CUDA), 64 bits", f.Machine, f.Class)
	}
	arch := architecture(f, image)
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}
	byName, order := map[string]*Kernel{}, []string{}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok {
			byName[name] = &Kernel{Name: name, Code: int(s.Size)}
			order = append(order, name)
		}
	}
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".nv.shared.")
		if k := byName[name]; ok && k != nil {
			k.Shared = int(s.Size)
			if arch >= 90 {
				k.Shared -= min(k.Shared, reserved)
			}
		}
	}
	if err := attributes(f, symbols, byName); err != nil {
		return nil, err
	}
	slices.Sort(order)
	out := make([]Kernel, len(order))
	for i, name := range order {
		out[i] = *byName[name]
		if out[i].Registers == 0 {
			return nil, fmt.Errorf("module: %s: no count of registers", name)
		}
	}
	return out, nil
}

// architecture is what a module is for: 90 for sm_90. Its place in the file's flags has changed with the ABI's version.
func architecture(f *elf.File, image []byte) int {
	const flags = 48 // offset of e_flags
	if f.ABIVersion >= 8 {
		return int(image[flags+1])
	}
	return int(image[flags])
}

// attributes reads registers and stacks. An entry is a format, an attribute, and then two bytes of value, or a size and so many bytes. The values
// that matter are pairs: a symbol's number, and a number.
func attributes(f *elf.File, symbols []elf.Symbol, kernels map[string]*Kernel) error {
	section := f.Section(".nv.info")
	if section == nil {
		return fmt.Errorf("module: no section .nv.info")
	}
	b, err := section.Data()
	if err != nil {
		return fmt.Errorf("module: .nv.info: %w", err)
	}
	for len(b) >= 4 {
		format, what, size := b[0], b[1], 0
		if format == formatSized {
			size = int(binary.LittleEndian.Uint16(b[2:]))
		}
		if len(b) < 4+size {
			return fmt.Errorf("module: .nv.info: an entry of %d bytes, %d are left", 4+size, len(b))
		}
		value := b[4 : 4+size]
		b = b[4+size:]
		if size != 8 || what != registerSize && what != frameSize {
			continue
		}
		symbol, n := int(binary.LittleEndian.Uint32(value)), int(binary.LittleEndian.Uint32(value[4:]))
		if symbol < 1 || symbol > len(symbols) {
			return fmt.Errorf("module: .nv.info: symbol %d of %d", symbol, len(symbols))
		}
		k := kernels[symbols[symbol-1].Name] // the list leaves out the empty symbol 0
		switch {
		case k == nil: // a function of the library that a kernel calls
		case what == registerSize:
			k.Registers = n
		default:
			k.Stack = n
		}
	}
	return nil
}
