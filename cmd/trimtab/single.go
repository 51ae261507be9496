package main

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapSingly makes the kernel map pages of files one at a time in the given areas. By default it
// maps 16 at a time, all of which then count as resident: the program uses little of its file, but
// uses it all over. The kernel has no setting for this, but it maps pages one at a time in areas
// that are registered with userfaultfd(2) for write protection. mapSingly protects no page, so that
// nobody has to read the descriptor, which stays open: closing it would end the registration.
// Where the kernel is older than 6.7, or a sandbox refuses, the error is ErrUnsupported.
func mapSingly(areas []mapping) error {
	// From linux/userfaultfd.h.
	const (
		userModeOnly  = 1
		version       = 0xaa
		wpAsync       = 1 << 15 // without it, areas of files are refused
		writeProtect  = 2
		ioctlAPI      = 0xc018aa3f
		ioctlRegister = 0xc020aa00
	)
	fd, _, errno := syscall.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0)
	if errno != 0 {
		return fmt.Errorf("map pages singly: %w: %w", errors.ErrUnsupported, errno)
	}
	fail := func(err error) error {
		_ = unix.Close(int(fd)) // nothing was written to it
		return fmt.Errorf("map pages singly: %w", err)
	}
	api := struct{ version, features, ioctls uint64 }{version: version, features: wpAsync}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, ioctlAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		return fail(fmt.Errorf("%w: %w", errors.ErrUnsupported, errno))
	}
	for _, m := range areas {
		r := struct{ start, size, mode, ioctls uint64 }{start: uint64(m.start), size: uint64(m.end - m.start), mode: writeProtect}
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, ioctlRegister, uintptr(unsafe.Pointer(&r))); errno != 0 {
			return fail(errno)
		}
	}
	return nil
}
