package checkpoint

import (
	"cmp"
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
	slices.SortFunc(out, func(a, b string) int { return later(filepath.Base(b), filepath.Base(a)) })
	return out, nil
}

// later compares the names of steps by number, however many digits.
func later(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }

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

// SetAside renames the checkpoints of steps after a given one to superseded-...: a run that goes on from that step makes them again, and nobody may take
// them for its own. They are left for people to look at or remove.
func SetAside(dir string, after int) error {
	list, err := List(dir)
	if err != nil {
		return err
	}
	for _, path := range list {
		name := filepath.Base(path)
		if later(name, stepName(after)) <= 0 {
			break // newest first
		}
		aside := filepath.Join(dir, "superseded-"+name)
		for i := 2; exists(aside); i++ {
			aside = filepath.Join(dir, fmt.Sprintf("superseded-%s-%d", name, i))
		}
		if err := os.Rename(path, aside); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// Prune removes all but the newest keep checkpoints. A removal that is cut off leaves a partial folder, which Sweep removes.
func Prune(dir string, keep int) error {
	list, err := List(dir)
	if err != nil || keep < 1 || len(list) <= keep {
		return err
	}
	var errs []error
	for _, path := range list[keep:] {
		gone, err := hide(path)
		if err == nil {
			err = os.RemoveAll(gone)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hide gives a folder that is to be removed a name that says so.
func hide(path string) (string, error) {
	gone := filepath.Join(filepath.Dir(path), partialPrefix+"old-"+filepath.Base(path))
	return gone, errors.Join(os.RemoveAll(gone), os.Rename(path, gone))
}
