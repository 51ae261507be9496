package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
)

// shrinkPages makes the kernel map the pages of this program's own file one at a time, where it can
// do that, and drops those that are resident.
func shrinkPages() error {
	own, err := ownPages()
	if err != nil {
		return err
	}
	_ = mapSingly(own) // without, the process works, too, and takes more memory
	return dropPages()
}

// dropPages drops the resident pages of this program's own file: code and constants that ran
// once, mostly at the start, count as resident until the kernel needs memory. A page that is used
// again comes from the page cache, also where the file was replaced or removed.
func dropPages() error {
	own, err := ownPages()
	if err != nil {
		return err
	}
	for _, m := range own {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("drop pages of the program: %w", errno)
		}
	}
	return nil
}

// ownPages returns what [ownClean] finds of this process.
func ownPages() ([]mapping, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("find pages of the program: %w", err)
	}
	defer f.Close()
	all, err := readMappings(f)
	if err != nil {
		return nil, fmt.Errorf("find pages of the program: %w", err)
	}
	return ownClean(all, reflect.ValueOf(ownPages).Pointer()), nil
}

// mapping is a part of a process's memory, as proc_pid_smaps(5) describes it.
type mapping struct {
	start, end uintptr
	mode       string // as "r-xp"
	file       string // device and inode; "00:00 0" where there is no file
	// resident and owned are in bytes; owned is the memory to which the process wrote and which
	// belongs to no file.
	resident, owned int64
	known           bool // owned was reported
}

// ownClean returns the mappings of the file with the code at address that cannot be
// written and were not: a page that a linker, a debugger or a probe changed is in no file, and
// would be lost.
func ownClean(all []mapping, address uintptr) (out []mapping) {
	file := ""
	for _, m := range all {
		if m.start <= address && address < m.end {
			file = m.file
		}
	}
	for _, m := range all {
		if m.file == file && !strings.HasSuffix(file, " 0") && (m.mode == "r-xp" || m.mode == "r--p") && m.known && m.owned == 0 {
			out = append(out, m)
		}
	}
	return out
}

// readMappings reads a file as /proc/self/smaps.
func readMappings(r io.Reader) (out []mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		if name, value := fields[0], fields[1]; strings.HasSuffix(name, ":") {
			if len(out) == 0 {
				return nil, trimtab.Invalidf("read mappings: %.80q belongs to none", lines.Text())
			}
			if err := out[len(out)-1].set(name, value); err != nil {
				return nil, err
			}
			continue
		}
		m, err := newMapping(fields)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, lines.Err()
}

// newMapping reads "401000-1e82000 r-xp 00001000 fe:00 1234 /usr/bin/trimtab".
func newMapping(fields []string) (m mapping, err error) {
	start, end, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields) < 5 {
		return m, trimtab.Invalidf("read mappings: %.80q", fields)
	}
	from, bad := strconv.ParseUint(start, 16, 64)
	to, worse := strconv.ParseUint(end, 16, 64)
	if bad != nil || worse != nil || from > to {
		return m, trimtab.Invalidf("read mappings: address %.80q", fields[0])
	}
	return mapping{start: uintptr(from), end: uintptr(to), mode: fields[1], file: fields[3] + " " + fields[4]}, nil
}

// set notes a line as "Anonymous: 12 kB".
func (m *mapping) set(name, value string) error {
	var to *int64
	switch name {
	case "Rss:":
		to = &m.resident
	case "Anonymous:", "Swap:":
		to, m.known = &m.owned, true
	default:
		return nil
	}
	kib, err := strconv.ParseInt(value, 10, 44)
	if err != nil {
		return trimtab.Invalidf("read mappings: %s %.80q", name, value)
	}
	*to += kib << 10
	return nil
}
