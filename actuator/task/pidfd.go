package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// openProcess returns a handle of the process with that number now, which stays valid even if the
// number is reused; nil: there is none.
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) { // EINVAL: the number now belongs to a thread
		return nil, nil
	}
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil { // lets the runtime wait for it
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// waitProcess waits until the process has ended, with all its threads.
func waitProcess(ctx context.Context, process *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = process.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := process.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return err == nil && n > 0
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// waitEmpty waits until a list of processes is empty. It waits for one of them, then reads the
// list again, since new ones may have come.
func waitEmpty(ctx context.Context, list func() ([]int, error)) error {
	for last := 0; ; {
		all, err := list()
		if err != nil || len(all) == 0 {
			return err
		}
		if all[0] == last { // the process has ended, and the kernel still lists it
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
		last = all[0]
		process, err := openProcess(all[0])
		if err != nil {
			return err
		}
		if process == nil {
			continue // the process ended meanwhile
		}
		err = waitProcess(ctx, process)
		process.Close()
		if err != nil {
			return err
		}
	}
}

// terminate sends SIGTERM to all processes in the list. It opens each process, then reads the list
// again: if the number is still listed, it belongs to the opened process, and to no later one.
func terminate(list func() ([]int, error)) error {
	all, err := list()
	if err != nil {
		return err
	}
	opened := map[int]*os.File{}
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	for _, pid := range all {
		f, err := openProcess(pid)
		if err != nil {
			return err
		}
		if f != nil {
			opened[pid] = f
		}
	}
	still, err := list()
	if err != nil {
		return err
	}
	for pid, f := range opened {
		if !slices.Contains(still, pid) {
			continue
		}
		if err := unix.PidfdSendSignal(int(f.Fd()), unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("terminate process %d: %w", pid, err)
		}
	}
	return nil
}
