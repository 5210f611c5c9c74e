//go:build cgo && linux

package mpi

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"encoding/json"
	"fmt"
	"unsafe"
)

// note is what one process tells another beside the data.
type note struct {
	Kind noteKind `json:"k"`
	From int      `json:"f"`
	Text string   `json:"t,omitempty"` // of a stop: the cause; of a join: the group; of a roll call and its answer
	Head *head    `json:"h,omitempty"`
	Turn int      `json:"n,omitempty"` // of a roll call
}

type noteKind uint8

const (
	noteMessage noteKind = iota
	noteJoin
	noteStop
	noteRollCall
	noteAnswer
	noteText
)

// noteSize is the room of a note on the wire.
const noteSize = 1024

// noteTag is the MPI tag of notes; data has others.
const noteTag = 0

func (n note) put(to []byte) error {
	for {
		raw, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if len(raw) <= len(to) {
			copy(to, raw)
			clear(to[len(raw):])
			return nil
		}
		if len(n.Text) == 0 {
			return fmt.Errorf("a note of %d bytes", len(raw))
		}
		n.Text = n.Text[:max(0, len(n.Text)-(len(raw)-len(to))-8)]
	}
}

func readNote(raw []byte) (n note, err error) {
	end := len(raw)
	for end > 0 && raw[end-1] == 0 {
		end--
	}
	err = json.Unmarshal(raw[:end], &n)
	return n, err
}

// tell sends a note; on the engine's thread. end hears when it has left.
func (w *World) tell(to int, n note, end func(error)) {
	n.From = w.rank
	buf := C.malloc(noteSize)
	if err := n.put(unsafe.Slice((*byte)(buf), noteSize)); err != nil {
		C.free(buf)
		end(err)
		return
	}
	w.eng.post("Isend", func(r *C.tx_handle) C.int {
		return C.tx_isend(w.eng.lib.table, buf, noteSize, C.tx_byte, C.int(to), noteTag, w.comm, r)
	}, func(err error) {
		C.free(buf)
		end(err)
	})
}

// listen keeps a receive of notes posted; on the engine's thread.
func (w *World) listen() {
	w.eng.standing++
	w.eng.post("Irecv", func(r *C.tx_handle) C.int {
		return C.tx_irecv(w.eng.lib.table, w.heard, noteSize, C.tx_byte, -1, noteTag, w.comm, r)
	}, func(err error) {
		w.eng.standing--
		if w.closed {
			return
		}
		if err != nil {
			w.fail(fmt.Errorf("notes of other ranks: %w", err))
			return
		}
		n, err := readNote(unsafe.Slice((*byte)(w.heard), noteSize))
		w.listen()
		if err != nil {
			w.fail(fmt.Errorf("a note that cannot be read: %w", err))
			return
		}
		w.hear(n)
	})
	if last := len(w.eng.notes) - 1; last >= 0 {
		w.eng.notes[last] = w
	}
}

// hear acts on a note; on the engine's thread.
func (w *World) hear(n note) {
	switch n.Kind {
	case noteStop:
		w.fail(&RemoteError{Rank: n.From, Text: n.Text})
	case noteRollCall:
		w.tell(n.From, note{Kind: noteAnswer, Turn: n.Turn, Text: w.state()}, func(error) {})
	default:
		w.mu.Lock()
		switch n.Kind {
		case noteMessage:
			s := sender{n.From, n.Head.tag()}
			w.lines[s] = append(w.lines[s], *n.Head)
		case noteJoin:
			w.joins[n.Text] = append(w.joins[n.Text], n.From)
		case noteText:
			w.texts = append(w.texts, n.Text)
		case noteAnswer:
			if n.Turn == w.turn && w.answers != nil {
				w.answers[n.From] = n.Text
			}
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}
