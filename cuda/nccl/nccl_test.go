//go:build cgo && linux

package nccl

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"triax/cuda/driver"
	"triax/cuda/nccl/fake"
)

var built struct {
	path string
	err  error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "nccl")
	if err != nil {
		panic(err)
	}
	built.path, built.err = fake.Build(dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// machine is the library that stands in, with its streams.
func machine(t *testing.T) (*Library, *fake.Streams) {
	t.Helper()
	path, err := built.path, built.err
	if errors.Is(err, fake.ErrNoCompiler) && os.Getenv("TRIAX_EMU") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := Load([]string{"/nowhere/libnccl.so.2", path})
	if err != nil {
		t.Fatal(err)
	}
	s, err := fake.OpenStreams(path)
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// ready waits until the library is through with what was begun on a communicator.
func ready(c *Comm) error {
	for range 5000 {
		if done, err := c.State(); done || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("not ready")
}

// numbers are pinned, as the library keeps their address.
type numbers struct {
	x   []float32
	pin runtime.Pinner
}

func of(x ...float32) *numbers {
	n := &numbers{x: x}
	n.pin.Pin(&x[0])
	return n
}

func (n *numbers) at() driver.Pointer { return driver.Pointer(uintptr(unsafe.Pointer(&n.x[0]))) }

// ranks plays n ranks that have made a communicator.
func ranks(t *testing.T, n int, f func(l *Library, c *Comm, s uintptr, done func() error) error) {
	t.Helper()
	l, streams := machine(t)
	id, err := l.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() {
			s := streams.New(-1)
			c, err := l.Init(id, n, rank, 8)
			if err == nil {
				err = ready(c)
			}
			if err == nil {
				err = f(l, c, s, func() error {
					for !streams.Idle(s) {
						time.Sleep(100 * time.Microsecond)
					}
					_, err := c.State()
					return err
				})
			}
			errs[rank] = err
		})
	}
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestCalls: every operation, over ranks of one process.
func TestCalls(t *testing.T) {
	const n = 3
	ranks(t, n, func(l *Library, c *Comm, s uintptr, done func() error) error {
		r := float32(c.Rank)
		issue := func(ops ...Op) error {
			for i := range ops {
				ops[i].Comm, ops[i].Stream, ops[i].Type = c, s, Float32
			}
			if err := l.Issue(ops); err != nil {
				return err
			}
			if err := ready(c); err != nil {
				return err
			}
			return done()
		}
		want := func(what string, got *numbers, x ...float32) error {
			if fmt.Sprint(got.x) != fmt.Sprint(x) {
				return fmt.Errorf("%s: %v, want %v", what, got.x, x)
			}
			return nil
		}
		sum, top := of(r, 10*r), of(r, -1-r)
		part, all := of(0), of(r, r+1, r+2)
		every, own := of(0, 0, 0), of(7+r)
		root, in := of(r), of(0)
		return errors.Join(
			issue(Op{Kind: AllReduce, Send: sum.at(), Recv: sum.at(), Count: 2}), want("sum", sum, 3, 30),
			issue(Op{Kind: AllReduce, Send: top.at(), Recv: top.at(), Count: 2, Reduction: Max}), want("maximum", top, 2, -1),
			issue(Op{Kind: ReduceScatter, Send: all.at(), Recv: part.at(), Count: 1}), want("reduce-scatter", part, 3+3*r),
			issue(Op{Kind: AllGather, Send: own.at(), Recv: every.at(), Count: 1}), want("all-gather", every, 7, 8, 9),
			issue(Op{Kind: Broadcast, Send: root.at(), Recv: root.at(), Count: 1, Peer: 2}), want("broadcast", root, 2),
			issue(Op{Kind: Send, Send: own.at(), Count: 1, Peer: (c.Rank + 1) % n}, Op{Kind: Recv, Recv: in.at(), Count: 1, Peer: (c.Rank + n - 1) % n}),
			want("ring", in, 7+float32((c.Rank+n-1)%n)),
			finish(c),
		)
	})
}

func finish(c *Comm) error { return errors.Join(c.Finalize(), ready(c), c.Destroy()) }

// TestSplit: parts by color, ordered by key; who has none is in none.
func TestSplit(t *testing.T) {
	ranks(t, 5, func(l *Library, c *Comm, s uintptr, done func() error) error {
		color, key, members, place := c.Rank%2, -c.Rank, 2, 0
		if color == 0 {
			place = map[int]int{4: 0, 2: 1}[c.Rank]
		} else {
			place = map[int]int{3: 0, 1: 1}[c.Rank]
		}
		if c.Rank == 0 {
			color = NoColor
		}
		part, err := c.Split(color, key, members, place, 0)
		if err != nil {
			return err
		}
		if c.Rank == 0 {
			if part != nil {
				return errors.New("a part for a rank without a color")
			}
			return ready(c)
		}
		if err := ready(part); err != nil {
			return err
		}
		x := of(float32(c.Rank))
		all := of(0, 0)
		if err := l.Issue([]Op{{Kind: AllGather, Comm: part, Stream: s, Send: x.at(), Recv: all.at(), Count: 1, Type: Float32}}); err != nil {
			return err
		}
		if err := errors.Join(ready(part), done()); err != nil {
			return err
		}
		if want := map[int]string{0: "[4 2]", 1: "[3 1]"}[color]; fmt.Sprint(all.x) != want {
			return fmt.Errorf("gathered %v, want %s", all.x, want)
		}
		return nil
	})
}

// TestRefused: statuses are errors with the library's words and the call's name, and a failed group does not stay open in the thread.
func TestRefused(t *testing.T) {
	ranks(t, 1, func(l *Library, c *Comm, s uintptr, done func() error) error {
		x := of(5)
		good := Op{Kind: AllReduce, Comm: c, Stream: s, Send: x.at(), Recv: x.at(), Count: 1, Type: Float32}
		bad := good
		bad.Type = 77
		var e *driver.Error
		if err := l.Issue([]Op{bad}); !errors.As(err, &e) || e.Library != "nccl" || e.Call != "ncclAllReduce" || e.Code != 4 || !strings.Contains(e.Text, "invalid argument: type or peer") {
			return fmt.Errorf("a wrong type: %v", err)
		}
		if err := l.Issue([]Op{good}); err != nil {
			return err
		}
		if err := l.Issue([]Op{good}); err == nil || !strings.Contains(err.Error(), "before the previous operation") {
			return fmt.Errorf("a busy communicator: %v", err)
		}
		return errors.Join(ready(c), done(), finish(c))
	})
	if _, err := Load([]string{"/nowhere/libnccl.so.2"}); !errors.Is(err, driver.ErrAbsent) {
		t.Errorf("no library: %v", err)
	}
	if Version(22907).String() != "2.29.7" || Version(22500).Ordered() || !Version(22600).Ordered() {
		t.Error("versions")
	}
}

// TestAbort: what waits for a peer that does not come ends when it is given up; a rank may give up while a communicator is being made too.
func TestAbort(t *testing.T) {
	l, streams := machine(t)
	id, err := l.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := l.Init(id, 2, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := alone.State(); done || err != nil {
		t.Errorf("alone of two: %v, %v", done, err)
	}
	if err := alone.Abort(); err != nil {
		t.Error(err)
	}
	id, err = l.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	var two [2]*Comm
	for rank := range two {
		if two[rank], err = l.Init(id, 2, rank, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range two {
		if err := ready(c); err != nil {
			t.Fatal(err)
		}
	}
	s, x := streams.New(-1), of(float32(math.Pi))
	if err := l.Issue([]Op{{Kind: AllReduce, Comm: two[0], Stream: s, Send: x.at(), Recv: x.at(), Count: 1, Type: Float32}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	if streams.Idle(s) {
		t.Error("a sum of two was made by one")
	}
	if err := errors.Join(ready(two[0]), two[0].Abort(), two[1].Abort()); err != nil {
		t.Error(err)
	}
	for !streams.Idle(s) {
		time.Sleep(time.Millisecond) // the test's own limit ends this where abort does not
	}
	if x.x[0] != math.Pi {
		t.Errorf("a sum that was given up wrote %v", x.x)
	}
}

// TestRealLibrary: where NVIDIA's own library is installed, everything that is looked for is in it, and it answers without a device.
func TestRealLibrary(t *testing.T) {
	l, err := Load(driver.Find().NCCL)
	if errors.Is(err, driver.ErrAbsent) {
		t.Skipf("SKIPPED: the binding is not held against NVIDIA's library: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NCCL %v, %s", l.Version, l.Path)
	if l.Version < 21800 {
		t.Errorf("version %v", l.Version)
	}
	if l.Path != "" && os.Getenv("TRIAX_LIBNCCL") != "" { // without a device the next needs only the network's loopback
		id, err := l.UniqueID()
		if err != nil || id == (ID{}) {
			t.Errorf("unique id %x, %v", id, err)
		}
		if _, err := driver.Load(driver.Find().Driver); err != nil {
			var e *driver.Error
			if _, err := l.Init(id, 1, 0, 0); !errors.As(err, &e) || e.Library != "nccl" {
				t.Errorf("a communicator without a device: %v", err)
			} else {
				t.Log(err)
			}
		}
	}
}
