package cpu

import "golang.org/x/sys/unix"

// allowTiles asks the system for the state of tile registers, once for the process: it is large, and threads are given it only on request
// (Linux, Documentation/arch/x86/xstate.rst).
func allowTiles() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
