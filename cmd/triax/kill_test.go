package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"triax/checkpoint"
)

// TestMain runs the command itself where a test starts this binary as the command.
func TestMain(m *testing.M) {
	if os.Getenv("TRIAX_TEST_COMMAND") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command is this binary as triax.
func command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "TRIAX_TEST_COMMAND=1")
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// job is a run of a second or so that saves after every second step.
func job(t *testing.T, out string) []string {
	t.Helper()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("killed and resumed. ", 500)), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{
		"train", tinyFile, "--out", out, "--resume", "latest", "--steps", "120", "--dp", "2", "--tp", "2", "--zero", "3", "--set", "optim.warmup=2",
		"--set", "checkpoint.every=2", "--set", "checkpoint.keep=3", "--set", "train.eval_batches=0", "--set", "data.source=" + text, "--set", "model.dropout=0.1",
	}
}

// TestKilled kills a run at random moments, in the middle of saves too. Every time the next one goes on from what the folder has, no more than the interval
// behind, and in the end weights and states are those of a run that nobody killed, to the last bit. TRIAX_KILLS sets how often; 50 is the nightly number.
func TestKilled(t *testing.T) {
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("TRIAX_KILLS")); err == nil {
		kills = n
	}
	whole, broken := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "broken")
	c, out := command(job(t, whole)...)
	start := time.Now()
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(start)
	args := job(t, broken)
	lost, done, ended := 0, 0, 0
	for range kills {
		if ended > 0 { // the run was over before it was killed: again from the start
			ended = 0
			if err := os.RemoveAll(broken); err != nil {
				t.Fatal(err)
			}
		}
		c, out := command(args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Float64() * float64(took)))
		_ = c.Process.Kill() // it may be over
		if err := c.Wait(); err == nil {
			ended++
		} else if c.ProcessState.ExitCode() >= 0 {
			t.Fatalf("%v\n%s", err, out)
		}
		reached := lastStep(t, broken)
		latest := newest(t, broken)
		if reached-latest > 3 { // two steps between saves, and one whose save was being written
			t.Errorf("step %d was done, the newest checkpoint is of step %d", reached, latest)
		}
		lost, done = max(lost, reached-latest), max(done, latest)
	}
	c, out = command(args...)
	if err := c.Run(); err != nil && newest(t, broken) != 120 {
		t.Fatalf("%v\n%s", err, out)
	}
	if a, b := sums(t, whole), sums(t, broken); a != b {
		t.Errorf("weights and states differ after %d kills", kills)
	}
	t.Logf("%d kills, at most %d steps lost, furthest kill after step %d", kills, lost, done)
}

// lastStep is the last step that a run's metrics have.
func lastStep(t *testing.T, run string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		return 0
	}
	last := 0
	for line := range strings.Lines(string(text)) {
		var l struct{ Step int }
		if json.Unmarshal([]byte(line), &l) == nil {
			last = max(last, l.Step)
		}
	}
	return last
}

// newest is the step of a run's newest checkpoint, which must be good.
func newest(t *testing.T, run string) int {
	t.Helper()
	c, refused, err := checkpoint.Latest(context.Background(), filepath.Join(run, "checkpoints"))
	if err != nil || len(refused) > 0 {
		t.Fatalf("%v %v", refused, err)
	}
	if c == nil {
		return 0
	}
	defer c.Close()
	return c.Step
}

// sums are the checksums of the last checkpoint.
func sums(t *testing.T, run string) string {
	t.Helper()
	c, _, err := checkpoint.Latest(context.Background(), filepath.Join(run, "checkpoints"))
	if err != nil || c == nil || c.Step != 120 {
		t.Fatalf("%v %v", c, err)
	}
	defer c.Close()
	text, err := json.Marshal(c.Entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStopped: the first SIGTERM ends the step, saves and exits with 3; the run goes on. The second one ends the process at once.
func TestStopped(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	args := append(job(t, run), "--set", "checkpoint.every=0", "--set", "train.steps=100000", "--steps", "100000")
	started := func(c *exec.Cmd, after int) {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if time.Sleep(10 * time.Millisecond); lastStep(t, run) > after+2 {
				return
			}
		}
		t.Fatal("no step in ten seconds")
	}
	c, out := command(args...)
	started(c, 0)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if c.ProcessState.ExitCode() != exitStopped || !strings.Contains(out.String(), "goes on") {
		t.Fatalf("exit code %d\n%s", c.ProcessState.ExitCode(), out)
	}
	first := newest(t, run)
	if first == 0 || first != lastStep(t, run) {
		t.Errorf("stopped after step %d, saved step %d", lastStep(t, run), first)
	}
	c, out = command(args...)
	started(c, first)
	for range 2 {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitInterrupted && code != exitStopped { // it may have stopped before the second came
		t.Errorf("exit code %d\n%s", code, out)
	}
	if !strings.Contains(out.String(), "goes on from") || newest(t, run) < first {
		t.Error(out)
	}
}
