package cgroup

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// maxProcesses is the longest list of processes that is read, in bytes: about half a million
// processes.
const maxProcesses = 4 << 20

// Processes lists the processes of a group and of all groups in it.
func Processes(root *hostfs.Root, group string) (all []int, err error) {
	err = root.Walk(group, func(dir string) error {
		text, err := root.ReadLong(path.Join(dir, "cgroup.procs"), maxProcesses)
		if dir != group && listsNone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, word := range strings.Fields(text) {
			pid, err := strconv.ParseInt(word, 10, 32)
			if err != nil || pid <= 0 {
				// The process is in another PID namespace and reads as 0: a signal to 0 would reach
				// trimtab itself.
				return trimtab.Invalidf("process %.40q of cgroup %s cannot be named from here", word, dir)
			}
			all = append(all, int(pid))
		}
		return nil
	})
	return all, err
}

// listsNone reports whether an error means that a child group has no processes to list: it is gone,
// or it is a threaded group, as libvirt makes for virtual CPUs, whose parent lists the processes.
func listsNone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP)
}
