package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
)

// Spec is an array to be written.
type Spec struct {
	Name  string
	DType DType
	Shape []int
	// Write gives the array's bytes, little-endian, as many as type and shape make.
	Write func(w io.Writer) error
}

func (s Spec) bytes() int { return Array{DType: s.DType, Shape: s.Shape}.Elements() * s.DType.Size() }

// Create writes a file beside path, syncs it and renames it: path is the whole file or what was there before.
func Create(path string, metadata map[string]string, arrays []Spec) (err error) {
	header, err := encode(metadata, arrays)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, errors.Join(err, f.Close(), os.Remove(f.Name())))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err = w.Write(header); err != nil {
		return err
	}
	for _, a := range arrays {
		c := &counter{w: w}
		if err = a.Write(c); err != nil {
			return err
		}
		if c.n != a.bytes() {
			return fmt.Errorf("array %q: %d bytes written, %d announced", a.Name, c.n, a.bytes())
		}
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}

// encode is the length and the header, padded with spaces so that the arrays begin at a multiple of 8.
func encode(metadata map[string]string, arrays []Spec) ([]byte, error) {
	header := map[string]any{}
	if len(metadata) > 0 {
		header["__metadata__"] = metadata
	}
	at := 0
	for _, a := range arrays {
		if _, twice := header[a.Name]; twice || a.Name == "__metadata__" {
			return nil, fmt.Errorf("array %q stands twice", a.Name)
		}
		if a.DType.Size() == 0 {
			return nil, fmt.Errorf("array %q: type %q is not known", a.Name, a.DType)
		}
		shape := a.Shape
		if shape == nil {
			shape = []int{}
		}
		header[a.Name] = entry{a.DType, shape, [2]int{at, at + a.bytes()}}
		at += a.bytes()
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// SortForAlignment orders arrays by falling size of element, as the format's own library does, so that each is aligned.
func SortForAlignment(arrays []Spec) {
	sort.SliceStable(arrays, func(i, j int) bool { return arrays[i].DType.Size() > arrays[j].DType.Size() })
}
