package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"triax/checkpoint/safetensors"
)

// Blob is a stretch of a weight or state, taken out of a rank's memory: what is written while training goes on.
type Blob struct {
	Kind string // Weight, or an optimizer state's name
	Stretch
	DType safetensors.DType
	Raw   []byte // Len elements, little-endian
}

// Weight is the kind of the parameters themselves; the others are optimizer states.
const Weight = "weight"

// Entry is a Blob in the index: where it lies, and the checksum of its bytes.
type Entry struct {
	Kind string `json:"kind"`
	Stretch
	DType safetensors.DType `json:"dtype"`
	File  string            `json:"file"`
	Array string            `json:"array"`
	CRC   uint32            `json:"crc32c"`
}

// Meta is what a checkpoint says beside its tensors.
type Meta struct {
	Step   int      `json:"step"`   // done
	Config string   `json:"config"` // the run's, as TOML
	Mesh   string   `json:"mesh"`   // that wrote it
	States []string `json:"states"` // of the optimizer
	Corpus string   `json:"corpus"` // sum of the tokens that are trained on
	Batch  int      `json:"batch"`  // samples a step
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Partial is the folder in which all ranks of a run write the checkpoint of a step; nonce is the run's own.
func Partial(dir string, step int, nonce string) string {
	return filepath.Join(dir, fmt.Sprintf("%s%s-%s", partialPrefix, stepName(step), nonce))
}

const partialPrefix = ".partial-"

func stepName(step int) string { return fmt.Sprintf("step-%09d", step) }

// WriteRank writes what one rank owns into a partial folder. The list of its entries comes last: when it is there, the rank is done.
func WriteRank(partial string, rank int, blobs []Blob) error {
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	file := fmt.Sprintf("rank-%05d.safetensors", rank)
	entries, specs := make([]Entry, 0, len(blobs)), make([]safetensors.Spec, 0, len(blobs))
	for _, b := range blobs {
		if b.Len() == 0 {
			continue // nothing but padding
		}
		array := fmt.Sprintf("%s/%s/%d", b.Kind, b.Name, b.From)
		entries = append(entries, Entry{b.Kind, b.Stretch, b.DType, file, array, crc32.Checksum(b.Raw, castagnoli)})
		specs = append(specs, safetensors.Spec{Name: array, DType: b.DType, Shape: []int{b.Len()}, Write: func(w io.Writer) error {
			_, err := w.Write(b.Raw)
			return err
		}})
	}
	if len(specs) > 0 {
		if err := safetensors.Create(filepath.Join(partial, file), map[string]string{"format": "triax"}, specs); err != nil {
			return err
		}
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	return writeSynced(rankList(partial, rank), text)
}

func rankList(partial string, rank int) string {
	return filepath.Join(partial, fmt.Sprintf("rank-%05d.json", rank))
}

// Finish waits until all ranks have written, joins their lists into the index, and gives the folder its name. It is called by one rank, and returns
// the finished folder.
func Finish(ctx context.Context, dir, partial string, ranks int, meta Meta) (string, error) {
	idx := index{Meta: meta}
	for rank := range ranks {
		text, err := await(ctx, rankList(partial, rank))
		if err != nil {
			return "", fmt.Errorf("checkpoint of step %d: rank %d: %w", meta.Step, rank, err)
		}
		var entries []Entry
		if err := json.Unmarshal(text, &entries); err != nil {
			return "", fmt.Errorf("checkpoint of step %d: %s: %w", meta.Step, rankList(partial, rank), err)
		}
		idx.Entries = append(idx.Entries, entries...)
	}
	text, err := idx.encode()
	if err != nil {
		return "", err
	}
	if err := writeSynced(filepath.Join(partial, indexFile), text); err != nil {
		return "", err
	}
	for rank := range ranks {
		if err := os.Remove(rankList(partial, rank)); err != nil {
			return "", err
		}
	}
	final := filepath.Join(dir, stepName(meta.Step))
	return final, publish(partial, final)
}

// publish gives a synced folder its name. Where the same step has been saved before, that one makes way.
func publish(partial, final string) (err error) {
	if err := syncFolder(partial); err != nil {
		return err
	}
	old := ""
	if exists(final) {
		if old, err = hide(final); err != nil {
			return err
		}
	}
	dir := filepath.Dir(final)
	if err := errors.Join(os.Rename(partial, final), syncFolder(dir), syncFolder(filepath.Dir(dir))); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(old)
}

// await reads a file once it is there: another process, perhaps on another host, is writing it.
func await(ctx context.Context, path string) ([]byte, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		text, err := os.ReadFile(path)
		if !errors.Is(err, os.ErrNotExist) {
			return text, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// writeSynced writes beside, syncs and renames.
func writeSynced(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// syncFolder makes names in a folder last through a loss of power.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
