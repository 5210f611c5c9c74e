//go:build !(cgo && linux)

package driver

// Stream is work beside the context's own; there is none in this build.
type Stream struct{}

func (*Context) Current() error              { return unbuilt("driver") }
func (*Context) Passed(Event) (bool, error)  { return false, unbuilt("driver") }
func (*Context) NewStream() (*Stream, error) { return nil, unbuilt("driver") }
func (*Stream) Handle() uintptr              { return 0 }
func (*Stream) After(Event) error            { return unbuilt("driver") }
func (*Stream) Record(Event) error           { return unbuilt("driver") }
func (*Stream) Close() error                 { return unbuilt("driver") }
