package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lostJob is a run of four ranks that goes on until something ends it.
func lostJob(t *testing.T, out string, more ...string) []string {
	args := job(t, out)
	for i, a := range args {
		if a == "120" {
			args[i] = "100000"
		}
	}
	return append(append(args, "--set", "train.timeout=2", "--ranks", "mpi"), more...)
}

// rankOf finds the process that is a rank of the run in a folder.
func rankOf(t *testing.T, run string, rank int) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if !bytes.Contains(line, []byte(run)) || bytes.Contains(line, []byte("mpi\x00-n\x00")) {
			continue
		}
		for _, name := range []string{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="} {
			if bytes.Contains(append([]byte{0}, env...), []byte("\x00"+name+strconv.Itoa(rank)+"\x00")) {
				pid, err := strconv.Atoi(filepath.Base(dir))
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatalf("no process is rank %d of %s", rank, run)
	return 0
}

// stepped waits until a run has done so many steps.
func stepped(t *testing.T, run string, n int, out *bytes.Buffer) {
	t.Helper()
	for range 3000 {
		if lastStep(t, run) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d steps in thirty seconds", lastStep(t, run))
}

// TestStoppedProcess: a rank that is stopped, and answers nobody, ends the run: the others name it and what they waited in, leave flight records, save
// nothing half, and the run goes on from its checkpoint, on fewer ranks where train.elastic is set.
func TestStoppedProcess(t *testing.T) {
	for family := range launchers {
		t.Run(family, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			c, out := launched(t, family, 4, lostJob(t, run)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			stepped(t, run, 6, out)
			pid := rankOf(t, run, 2)
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := c.Wait(); err == nil {
				t.Error("it ended well")
			}
			t.Logf("ended after %v", time.Since(start))
			_ = syscall.Kill(pid, syscall.SIGKILL) // the launcher may have done it
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			const lost = "rank 2 (dp1 pp0 tp0) does not answer: killed, stopped or cut off"
			if !strings.Contains(out.String(), lost) || !strings.Contains(out.String(), "train.timeout") {
				t.Errorf("no %q in\n%s", lost, out)
			}
			d, said := command("doctor", "--flight", filepath.Join(run, "flight"))
			if err := d.Run(); err != nil || !strings.Contains(said.String(), lost) {
				t.Errorf("%v\n%s", err, said)
			}
			saved := newest(t, run)
			if saved == 0 || lastStep(t, run)-saved > 3 {
				t.Errorf("step %d was done, step %d saved", lastStep(t, run), saved)
			}
			again, out := launched(t, family, 2, lostJob(t, run, "--set", "train.elastic=true", "--set", "train.steps="+strconv.Itoa(saved+3), "--steps", strconv.Itoa(saved+3))...)
			if err := again.Run(); err != nil || !strings.Contains(out.String(), "mesh.dp is 1, for 2 processes") || newest(t, run) != saved+3 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestLaunchRestarts: triax launch names a rank that is killed, and starts the processes again; they go on from the newest checkpoint.
func TestLaunchRestarts(t *testing.T) {
	for family, l := range launchers {
		t.Run(family, func(t *testing.T) {
			launched(t, family, 1) // skips where there is no launcher
			lost := regexp.MustCompile(`triax launch: the processes ended with code \d+: rank 1 \(dp0 pp0 tp1\), process \d+ on .*, died`)
			run := filepath.Join(t.TempDir(), "run")
			args := lostJob(t, run)
			for i, a := range args {
				if a == "100000" {
					args[i] = "90"
				}
			}
			c, out := command(append([]string{"launch", "-n", "4", "--restarts", "2", "--mpiexec", l[0]}, args...)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			stepped(t, run, 6, out)
			if err := syscall.Kill(rankOf(t, run, 1), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil || !strings.Contains(out.String(), "restart 1 of 2") || !lost.MatchString(out.String()) || !strings.Contains(out.String(), "goes on from "+run) || newest(t, run) != 90 {
				t.Errorf("%v, saved %d\n%s", err, newest(t, run), out)
			}
		})
	}
}
