package pp

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic turned into an error, so that it gains its place on the way up like any other.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Unwrap is the panic's value where that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Recover, deferred, turns a panic of its function into *err.
func Recover(err *error) {
	if v := recover(); v != nil {
		*err = &Panic{Value: v, Stack: debug.Stack()}
	}
}
