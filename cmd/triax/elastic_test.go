package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFewer: how many processes are started again for hosts that take so many, and what is refused.
func TestFewer(t *testing.T) {
	train := func(more string) []string {
		return strings.Fields("train " + tinyFile + " --pp 2 --tp 2 --microbatches 2 " + more)
	}
	for _, c := range []struct {
		args    []string
		n, left int
		want    int
		say     string
	}{
		{train("--dp 4"), 16, 16, 16, ""},
		{train("--dp 4"), 16, 12, 0, "train.elastic is not set"},
		{train("--dp 4 --set train.elastic=true"), 16, 15, 8, ""}, // three replicas have room, and do not divide the batch of 16
		{train("--dp 4 --set train.elastic=true"), 16, 7, 4, ""},
		{train("--dp 4 --set train.elastic=true"), 16, 3, 0, "a replica has 4 ranks"},
		{train("--dp 3 --set train.batch=18 --set train.elastic=true"), 12, 8, 0, "mesh.dp = 1"},
		{[]string{"doctor", tinyFile}, 8, 4, 0, "only train"},
	} {
		if strings.Contains(strings.Join(c.args, " "), "train.batch=18") {
			c.args = append(c.args, "--set", "pipeline.microbatches=3") // 18 / 2 and 18 / 1 samples: only the first is no multiple of three
			c.want, c.say = 4, ""
		}
		got, err := fewer(c.args, c.n, c.left)
		if got != c.want || (c.say == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v, %d of %d: %d, %v", c.args, c.left, c.n, got, err)
		}
	}
}

// TestLaunchShrinks: a host that no longer answers is left out, and the run goes on with the replicas that the others have room for.
func TestLaunchShrinks(t *testing.T) {
	for family, l := range launchers {
		t.Run(family, func(t *testing.T) {
			launched(t, family, 1) // skips where there is no launcher
			dir := t.TempDir()
			run, gone, hosts := filepath.Join(dir, "run"), filepath.Join(dir, "gone"), filepath.Join(dir, "hosts")
			starter := pretender(t, dir, l, gone)
			if err := os.WriteFile(hosts, []byte("a\na2\nb\nb2\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			args := lostJob(t, run, "--set", "train.elastic=true")
			for i, a := range args {
				if a == "100000" {
					args[i] = "90"
				}
			}
			c, out := command(append([]string{"launch", "-n", "4", "--restarts", "2", "--hosts", hosts, "--mpiexec", starter}, args...)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			stepped(t, run, 6, out)
			if err := os.WriteFile(gone, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(rankOf(t, run, 3), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			for _, want := range []string{"host b does not answer", "restart 1 of 2, of 2 processes", "mesh.dp is 1, for 2 processes", "goes on from " + run} {
				if err != nil || !strings.Contains(out.String(), want) {
					t.Fatalf("%v, no %q in\n%s", err, want, out)
				}
			}
			if newest(t, run) != 90 {
				t.Errorf("step %d saved\n%s", newest(t, run), out)
			}
			if left, err := filepath.Glob(filepath.Join(run, "flight", "*")); err != nil || len(left) > 0 {
				t.Errorf("records of an attempt that was begun again: %v %v", left, err)
			}
		})
	}
}

// pretender is a launcher for which hosts of any name are this machine, until a file is there: then a host called b or b2 does not answer.
func pretender(t *testing.T, dir string, real []string, gone string) string {
	t.Helper()
	script := fmt.Sprintf(`#!/bin/bash
[ "$1" = --version ] && exec %[1]s --version
args=() host=
while [ $# -gt 0 ]; do
  case $1 in
  --hostfile | -f) shift 2 ;;
  --host | -hosts) host=$2; shift 2 ;;
  --allow-run-as-root) shift ;;
  -n) args+=("$@"); break ;;
  *) args+=("$1"); shift ;;
  esac
done
case $host in b*) [ -e %[3]s ] && exit 1 ;; esac
exec %[1]s %[2]s "${args[@]}"
`, real[0], strings.Join(real[1:], " "), gone)
	path := filepath.Join(dir, "mpirun")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
