package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Host is a line of a host file: Open MPI's "a slots=2", or hydra's "a:2".
type Host struct {
	Name  string
	Slots int
}

var hostLine = regexp.MustCompile(`^([^\s:#]+)(?::(\d+))?(?:\s+.*?\bslots\s*=\s*(\d+))?`)

// ReadHosts reads a host file of either family. A host that does not say how many processes it takes takes one.
func ReadHosts(path string) (hosts []Host, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("host file: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		m := hostLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		h := Host{m[1], 1}
		if n, err := strconv.Atoi(m[2] + m[3]); err == nil {
			h.Slots = n
		}
		hosts = append(hosts, h)
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("host file %s names no host", path)
	}
	return hosts, nil
}

// WriteHosts writes a host file for a starter.
func (s Starter) WriteHosts(path string, hosts []Host) error {
	var b strings.Builder
	for _, h := range hosts {
		if s.Family == "MPICH" {
			fmt.Fprintf(&b, "%s:%d\n", h.Name, h.Slots)
		} else {
			fmt.Fprintf(&b, "%s slots=%d\n", h.Name, h.Slots)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("host file: %w", err)
	}
	return nil
}

// answerWithin is how long a host may take to start one process.
const answerWithin = 15 * time.Second

// Reachable are the hosts, in their order, on which the launcher can start a process.
func (s Starter) Reachable(ctx context.Context, hosts []Host) (there []Host) {
	ok := make([]bool, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { ok[i] = s.reaches(ctx, h.Name) })
	}
	all.Wait()
	for i, h := range hosts {
		if ok[i] {
			there = append(there, h)
		}
	}
	return there
}

func (s Starter) reaches(ctx context.Context, host string) bool {
	args := []string{"-hosts", host, "-n", "1", "true"}
	if s.Family == "Open MPI" {
		args = []string{"--allow-run-as-root", "--host", host, "-n", "1", "true"}
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c := exec.CommandContext(ctx, s.Path, args...)
	apart(c)
	c.Cancel = func() error { return killGroup(c.Process) }
	c.WaitDelay = time.Second
	return c.Run() == nil
}
