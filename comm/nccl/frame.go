package nccl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"triax/comm"
	"triax/tensor"
)

// frame is what ranks and the hub say to one another, a line of JSON each.
type frame struct {
	Kind  string `json:"k"`
	From  int    `json:"f"`
	To    int    `json:"t,omitempty"`
	Size  int    `json:"s,omitempty"` // of a hello: the world's
	Name  string `json:"n,omitempty"` // of a meeting, the members' own name for it
	Ranks []int  `json:"r,omitempty"` // of a meeting: its members by place
	// Bodies are, of a meeting, what this member brings, or what all have brought.
	Bodies [][]byte `json:"b,omitempty"`
	Text   string   `json:"x,omitempty"` // of a stop: the cause; of an answer
	Turn   int      `json:"u,omitempty"` // of a roll call
	Head   *head    `json:"h,omitempty"`
}

const (
	kindHello   = "hello"
	kindRefused = "refused" // a hello that contradicts others
	kindMeet    = "meet"    // to the hub: here; from it: all are
	kindMessage = "message" // to the hub: ready to be sent; from it: go
	kindData    = "data"    // a message of host memory, with it
	kindStop    = "stop"
	kindAsk     = "ask"
	kindAnswer  = "answer"
	kindBye     = "bye"
)

// head is what a message is.
type head struct {
	ID    int          `json:"i"` // the sender's number for it
	Kind  uint8        `json:"k"`
	Stage int          `json:"s"`
	Micro int          `json:"m"`
	DType tensor.DType `json:"d"`
	Shape []int        `json:"h"`
}

func (h head) tag() comm.Tag { return comm.Tag{Kind: h.Kind, Stage: h.Stage, Micro: h.Micro} }

// link is one end of a connection. What is given to it is sent in order and never waits for the other end.
type link struct {
	conn net.Conn
	in   *json.Decoder

	mu     sync.Mutex
	queue  []frame
	wake   chan struct{}
	closed bool
	done   chan struct{} // closed when the writer has ended
}

func newLink(c net.Conn) *link {
	l := &link{conn: c, in: json.NewDecoder(bufio.NewReader(c)), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.write()
	return l
}

func (l *link) send(f frame) {
	l.mu.Lock()
	l.queue = append(l.queue, f)
	l.mu.Unlock()
	l.poke()
}

func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) write() {
	defer close(l.done)
	out := bufio.NewWriter(l.conn)
	enc := json.NewEncoder(out)
	for {
		l.mu.Lock()
		batch, closed := l.queue, l.closed
		l.queue = nil
		l.mu.Unlock()
		for _, f := range batch {
			if enc.Encode(f) != nil {
				return // the reader of this connection hears of it too
			}
		}
		if out.Flush() != nil || closed && len(batch) == 0 {
			return
		}
		if len(batch) == 0 {
			<-l.wake
		}
	}
}

func (l *link) read() (f frame, err error) {
	err = l.in.Decode(&f)
	return f, err
}

// close sends what is left, and ends the connection.
func (l *link) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.poke()
	<-l.done
	if err := l.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (f frame) String() string { return fmt.Sprintf("%s %s from %d", f.Kind, f.Name, f.From) }
