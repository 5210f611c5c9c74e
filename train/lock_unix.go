//go:build unix

package train

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"triax/configs"
)

// lockFolder keeps other processes out of a run's folder until the file is closed, or this process ends in whatever way. Where the
// file system has no locks on folders it keeps nobody out.
func lockFolder(path string) (*os.File, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(configs.Problems{{Field: "out", Value: path, Rule: "another process is training there", Hint: "stop it first, or name another folder"}}, d.Close())
	}
	return d, nil
}
