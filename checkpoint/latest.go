package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var stepFolder = regexp.MustCompile(`^step-\d{9,15}$`)

// List is the finished checkpoints in a folder, the newest first; a folder that is not there has none.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && stepFolder.MatchString(e.Name()) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(out, func(a, b string) int { // by number, however many digits
		a, b = filepath.Base(a), filepath.Base(b)
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	return out, nil
}

// Latest opens the newest checkpoint that is whole and unchanged. refused says which newer ones are not, and why. It returns nil where there is none at all,
// and an error where there are some and none is good.
func Latest(ctx context.Context, dir string) (c *Checkpoint, refused []error, err error) {
	list, err := List(dir)
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	for _, path := range list {
		c, err := OpenVerified(ctx, path)
		if err == nil {
			return c, refused, nil
		}
		if ctx.Err() != nil {
			return nil, refused, err
		}
		refused = append(refused, err)
	}
	return nil, nil, fmt.Errorf("no checkpoint in %s is good: %w", dir, errors.Join(refused...))
}

// OpenVerified opens a checkpoint and compares all checksums.
func OpenVerified(ctx context.Context, dir string) (*Checkpoint, error) {
	c, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Sweep removes what runs that were killed left half-written.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partialPrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Prune removes all but the newest keep checkpoints. A removal that is cut off leaves a partial folder, which Sweep removes.
func Prune(dir string, keep int) error {
	list, err := List(dir)
	if err != nil || keep < 1 || len(list) <= keep {
		return err
	}
	var errs []error
	for _, path := range list[keep:] {
		gone := filepath.Join(dir, partialPrefix+"old-"+filepath.Base(path))
		if err := os.Rename(path, gone); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(gone))
	}
	return errors.Join(errs...)
}
