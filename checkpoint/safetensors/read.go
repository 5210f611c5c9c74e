package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// maxHeader bounds the JSON of a file: the limit of the format's own library.
const maxHeader = 100 << 20

// File is an open file. Its arrays are views of mapped memory and must not be used after Close. It may be used by several goroutines.
type File struct {
	Path     string
	Metadata map[string]string
	Arrays   map[string]Array

	raw   []byte
	data  int // where the arrays begin
	unmap func() error
}

// Array is one entry of the header.
type Array struct {
	DType DType
	Shape []int
	from  int // in the data
	to    int
}

// Elements is the number of elements.
func (a Array) Elements() int {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of the array.
func (a Array) Bytes() int { return a.to - a.from }

// Open maps a file and checks its header: types, shapes and ranges fit one another and the file, and no two arrays overlap.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", path)
	}
	if info.Size() < 10 {
		return nil, fmt.Errorf("%s: %d bytes are no safetensors file", path, info.Size())
	}
	raw, unmap, err := mapFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, unmap()))
	}
	out.Path, out.unmap = path, unmap
	return out, nil
}

// Forget takes pages that were touched out of the process's resident memory; they come from the file again when they are touched again. It may be
// called while others read.
func (f *File) Forget() error { return forget(f.raw) }

// Close unmaps the file.
func (f *File) Close() error {
	if f.unmap == nil {
		return nil
	}
	unmap := f.unmap
	f.raw, f.unmap = nil, nil
	return unmap()
}

// Bytes is an array's memory.
func (f *File) Bytes(a Array) []byte { return f.raw[f.data+a.from : f.data+a.to : f.data+a.to] }

// Try runs a function that reads arrays. Pages that the file no longer has, because it was cut off since or because its disk fails, are an error and not the
// end of the process.
func (f *File) Try(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("%s: cannot be read at address %#x: cut off since it was opened, or its disk fails", f.Path, fault.Addr())
			return
		}
		panic(r)
	}()
	return use()
}

// Names lists the arrays in order of their place in the file.
func (f *File) Names() []string {
	names := make([]string, 0, len(f.Arrays))
	for n := range f.Arrays {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := f.Arrays[a].from - f.Arrays[b].from; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

// entry is an array in the header's JSON.
type entry struct {
	DType   DType  `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

func parse(raw []byte) (*File, error) {
	n := binary.LittleEndian.Uint64(raw)
	if n > maxHeader || n > uint64(len(raw)-8) {
		return nil, fmt.Errorf("header of %d bytes in a file of %d; not a safetensors file, or cut off", n, len(raw))
	}
	f := &File{raw: raw, data: 8 + int(n), Arrays: map[string]Array{}}
	names, err := f.header(raw[8:f.data])
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	at := 0
	for _, name := range names { // in order of place
		a := f.Arrays[name]
		if a.from != at {
			return nil, fmt.Errorf("array %q begins at %d where %d was expected: arrays leave gaps or overlap", name, a.from, at)
		}
		at = a.to
	}
	if at != len(raw)-f.data {
		return nil, fmt.Errorf("%d bytes of arrays in a file with %d: cut off, or longer than its header says", at, len(raw)-f.data)
	}
	return f, nil
}

// header decodes the JSON one entry at a time, so that a name given twice is seen.
func (f *File) header(text []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("want a JSON object"), err)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("want names")
		}
		if name == "__metadata__" {
			if err := d.Decode(&f.Metadata); err != nil {
				return nil, fmt.Errorf("__metadata__: %w", err)
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		if _, twice := f.Arrays[name]; twice {
			return nil, fmt.Errorf("array %q stands twice", name)
		}
		if err := e.check(len(f.raw) - f.data); err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		f.Arrays[name] = Array{e.DType, e.Shape, e.Offsets[0], e.Offsets[1]}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more after the object")
	}
	return f.Names(), nil
}

// check: type and shape make as many bytes as the offsets say, within the file.
func (e entry) check(size int) error {
	if e.DType.Size() == 0 {
		return fmt.Errorf("type %q is not known", e.DType)
	}
	if e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] || e.Offsets[1] > size {
		return fmt.Errorf("bytes %d to %d of %d", e.Offsets[0], e.Offsets[1], size)
	}
	n := uint64(e.DType.Size())
	for _, d := range e.Shape {
		if d < 0 {
			return fmt.Errorf("shape %v", e.Shape)
		}
		over, product := bits.Mul64(n, uint64(d))
		if over != 0 || product > 1<<62 {
			return fmt.Errorf("shape %v is too large", e.Shape)
		}
		n = product
	}
	if n != uint64(e.Offsets[1]-e.Offsets[0]) {
		return fmt.Errorf("%s%v takes %d bytes, the offsets give %d", e.DType, e.Shape, n, e.Offsets[1]-e.Offsets[0])
	}
	return nil
}
