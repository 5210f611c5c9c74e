package comm

import "fmt"

var tagNames = [...]string{TagForward: "forward", TagBackward: "backward", TagRing: "ring", TagRingGrad: "ring gradient"}

// String prints "forward to stage 2, microbatch 5".
func (t Tag) String() string {
	name := fmt.Sprint("kind ", t.Kind)
	if int(t.Kind) < len(tagNames) {
		name = tagNames[t.Kind]
	}
	return fmt.Sprintf("%s to stage %d, microbatch %d", name, t.Stage, t.Micro)
}
