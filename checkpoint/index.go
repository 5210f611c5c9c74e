package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
)

const (
	indexFile = "index.json"
	format    = "triax checkpoint"
	version   = 1
	maxIndex  = 1 << 30
)

// index is index.json, but for its own checksum.
type index struct {
	Meta
	Entries []Entry `json:"entries"`
}

// sealed is index.json: its content with a checksum, so that no bit of it is believed unseen.
type sealed struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	CRC     uint32          `json:"crc32c"`
	Index   json.RawMessage `json:"index"`
}

func (x index) encode() ([]byte, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed{format, version, crc32.Checksum(text, castagnoli), text})
}

func decodeIndex(text []byte) (x index, err error) {
	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return x, fmt.Errorf("cut off, or not ours: %w", err)
	}
	switch {
	case s.Format != format:
		return x, fmt.Errorf("format %q: want %q", s.Format, format)
	case s.Version != version:
		return x, fmt.Errorf("version %d: this program reads %d", s.Version, version)
	case crc32.Checksum(s.Index, castagnoli) != s.CRC:
		return x, errors.New("changed since it was written: its checksum does not fit")
	}
	if err := json.Unmarshal(s.Index, &x); err != nil {
		return x, err
	}
	return x, x.check()
}

var fileName = regexp.MustCompile(`^rank-\d{5,9}\.safetensors$`)

// check: every stretch is possible, those of a tensor do not overlap, and together they are all of it.
func (x index) check() error {
	if x.Step < 0 {
		return fmt.Errorf("step %d", x.Step)
	}
	type tensor struct{ kind, name string }
	sums, shapes := map[tensor]int{}, map[string]string{}
	for _, e := range x.Entries {
		if err := e.check(); err != nil {
			return err
		}
		if !fileName.MatchString(e.File) || !e.DType.Float() {
			return fmt.Errorf("%s: file %q, type %q", e.Name, e.File, e.DType)
		}
		shape := fmt.Sprint(e.Shape)
		if old, ok := shapes[e.Name]; ok && old != shape {
			return fmt.Errorf("%s: shape %s and %s", e.Name, old, shape)
		}
		shapes[e.Name] = shape
		sums[tensor{e.Kind, e.Name}] += e.Len()
	}
	for _, e := range x.Entries {
		if n, want := sums[tensor{e.Kind, e.Name}], elements(e.Shape); n != want {
			return fmt.Errorf("%s of %s: stretches of %d elements, it has %d", e.Kind, e.Name, n, want)
		}
	}
	return nil
}

// readIndex reads a checkpoint's index.
func readIndex(dir string) (index, error) {
	path := filepath.Join(dir, indexFile)
	info, err := os.Stat(path)
	if err != nil {
		return index{}, err
	}
	if info.Size() > maxIndex {
		return index{}, fmt.Errorf("%s: %d bytes are no index", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return index{}, err
	}
	x, err := decodeIndex(text)
	if err != nil {
		return x, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}
