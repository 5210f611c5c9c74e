package nccl

import (
	"triax/cuda/driver"
	"triax/tensor"
)

// Device is the memory that is moved and the streams that move it. Bind, Stream, Scratch and the methods of Streams are called on the engine's thread.
type Device interface {
	// Bind makes the device the calling thread's.
	Bind() error
	// Address is where a tensor begins; ok is false where its memory is not the device's. Of an empty tensor it may be anything.
	Address(t *tensor.Tensor) (p driver.Pointer, ok bool)
	Stream() (Stream, error)
	// Scratch is n bytes of the device's memory, of any content, until the device is closed.
	Scratch(n int) (driver.Pointer, error)
	// Mark is the work that the device has been given so far. It may be called from any goroutine.
	Mark() (Mark, error)
}

// Mark is a point in a device's work.
type Mark interface {
	// Reached says whether the work before it is done. It is called on the engine's thread.
	Reached() (bool, error)
}

// Stream does what it is given in order, beside the device's other work.
type Stream interface {
	Handle() uintptr // for the library
	// After makes what is given next wait for a mark of the same device.
	After(Mark) error
	// Mark is the work that the stream has been given so far.
	Mark() (Mark, error)
	Close() error
}
