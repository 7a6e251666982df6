package main

import (
	"os"
	"syscall"
	"unsafe"
)

// onFile makes a call with a file's descriptor, and leaves the file as it is:
// File.Fd would make it block, so that closing it no longer ends a read.
func onFile(f *os.File, request uintptr, arg unsafe.Pointer) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sys syscall.Errno
	err = raw.Control(func(fd uintptr) { _, _, sys = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)) })
	if err == nil && sys != 0 {
		err = sys
	}
	return err
}

func ioctl(f *os.File, request uintptr, n *int32) error { return onFile(f, request, unsafe.Pointer(n)) }

func setSize(f *os.File, cols, rows uint16) error {
	size := [4]uint16{rows, cols}
	return onFile(f, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}
