package waits

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// maxProcesses are how many processes of a group are looked at for its sockets, maxFiles how
	// many descriptors of one: listening sockets are opened first. maxListening bounds the
	// listening sockets of a namespace.
	maxProcesses, maxFiles, maxListening = 64, 1024, 4096
	// remembered is for how many rounds it is, whose socket one is; lasts for how many what a
	// file of another namespace said counts, of which one is read in a round.
	remembered, lasts = 30, 5
)

// Sockets reads the accept queues of control groups.
type Sockets struct {
	// Proc is where the kernel tells of processes; "": /proc.
	Proc string
	// Left is how many descriptors may still be looked at in this round.
	Left int
	// spaces are the sockets of each network namespace, as they were read last.
	spaces map[uint64]*space
	// owned tells whose sockets are a group's, and whose are not.
	owned map[owner]bool
	// round counts rounds; read tells that the file of a namespace was read in this one.
	round int
	read  bool
}

// space are the accept queues of a network namespace that are not empty, by the number of
// the socket.
type space struct {
	queues map[uint64]int
	err    error
	// round is the one in which it was read, asked the one in which it was asked for last.
	round, asked int
}

// owner is a group and a socket.
type owner struct {
	group  string
	socket uint64
}

// Begin begins a round, in which so many descriptors may be looked at.
func (s *Sockets) Begin(files int) {
	if s.round++; s.round%remembered == 1 {
		s.owned = map[owner]bool{}
	}
	if s.spaces == nil {
		s.spaces = map[uint64]*space{}
	}
	maps.DeleteFunc(s.spaces, func(_ uint64, in *space) bool { return s.round-in.asked > lasts })
	s.Left, s.read = files, false
}

// Queued is how many connections wait to be accepted by the processes of a group and of the
// groups beneath it.
func (s *Sockets) Queued(root *hostfs.Root, group string) (n int, err error) {
	var processes []int
	err = Numbers(root, group, "cgroup.procs", func(pid int) error {
		if processes = append(processes, pid); len(processes) > maxProcesses {
			return ErrTooMany
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrTooMany) {
		return 0, fmt.Errorf("read sockets of %s: %w", group, err)
	}
	l := look{Sockets: s, group: group, more: err != nil}
	for _, pid := range processes[:min(len(processes), maxProcesses)] {
		if err := l.process(pid); err != nil {
			return 0, fmt.Errorf("read sockets of %s: %w", group, err)
		}
	}
	if n, err = l.sum(); err != nil {
		return 0, fmt.Errorf("read sockets of %s: %w", group, err)
	}
	return n, nil
}

// look is a look at the sockets of one group.
type look struct {
	*Sockets
	group string
	// spaces are the namespaces that its processes have.
	spaces map[uint64]bool
	// denied: the descriptors of a process may not be read; more: there are more than are read.
	denied, more bool
}

// process looks which sockets a process has. One that ended has none.
func (l *look) process(pid int) error {
	id, ok := l.spaceOf(strconv.Itoa(pid))
	if !ok {
		return nil
	}
	in := l.in(id, pid)
	if in == nil {
		return nil
	}
	if l.spaces == nil {
		l.spaces = map[uint64]bool{}
	}
	l.spaces[id] = true
	if in.err != nil || l.knows(in) {
		return in.err
	}
	err := l.files(pid, in)
	if errors.Is(err, fs.ErrPermission) {
		if l.own(id) {
			l.denied = true
			return nil
		}
		for socket := range in.queues {
			l.owned[owner{l.group, socket}] = true
		}
		return nil
	}
	return err
}

// in returns the sockets of a namespace, by a process that is in it; nil: that ended. A file of
// a namespace takes 2 ms, since the kernel looks through its tables of all namespaces for it:
// those that were not read for longest have their turn.
func (s *Sockets) in(id uint64, pid int) *space {
	in := s.spaces[id]
	if in != nil && in.round == s.round {
		return in
	}
	if self, ok := s.spaceOf("self"); ok && self == id && s.Proc == "" {
		if queues, err := listeningHere(); err == nil {
			in = &space{queues: queues, round: s.round, asked: s.round}
			s.spaces[id] = in
			return in
		}
	}
	if s.read || in != nil && s.round-in.round < len(s.spaces) {
		if in == nil {
			in = &space{err: ErrTooMany}
			s.spaces[id] = in
		}
		if in.asked = s.round; s.round-in.round > lasts {
			in.queues, in.err = nil, ErrTooMany
		}
		return in
	}
	queues, err := listening(procOf(s.Proc) + "/" + strconv.Itoa(pid) + "/net/")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	in = &space{queues, err, s.round, s.round}
	s.spaces[id], s.read = in, true
	return in
}

// spaceOf tells the network namespace of a process by the number of a file that each has of its
// own: to read the link to it takes more rights.
func (s *Sockets) spaceOf(process string) (id uint64, ok bool) {
	var st unix.Stat_t
	err := unix.Stat(procOf(s.Proc)+"/"+process+"/net/tcp", &st)
	return st.Ino, err == nil
}

// own reports whether a namespace is this process's, or the system's.
func (s *Sockets) own(id uint64) bool {
	for _, process := range []string{"self", "1"} {
		if of, ok := s.spaceOf(process); ok && of == id {
			return true
		}
	}
	return false
}

// knows reports whether it is known of each queue whether it is the group's.
func (l *look) knows(in *space) bool {
	for socket := range in.queues {
		if _, known := l.owned[owner{l.group, socket}]; !known {
			return false
		}
	}
	return true
}

// files looks for sockets with a queue among the descriptors of a process.
func (l *look) files(pid int, in *space) error {
	dir := procOf(l.Proc) + "/" + strconv.Itoa(pid) + "/fd"
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(names) > maxFiles {
		names, l.more = names[:maxFiles], true
	}
	for _, name := range names {
		if l.Left--; l.Left < 0 {
			l.more = true
			return nil
		}
		link, err := os.Readlink(dir + "/" + name)
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		number, socket := strings.CutPrefix(link, "socket:[")
		if err != nil || !socket {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil && in.queues[n] > 0 {
			l.owned[owner{l.group, n}] = true
		}
	}
	return nil
}

// sum adds up the queues that are the group's. It fails where there are none and it was not
// seen whose the others are.
func (l *look) sum() (n int, err error) {
	if len(l.spaces) == 0 {
		return 0, fmt.Errorf("none of its processes can be seen: %w", os.ErrNotExist)
	}
	unknown := false
	for id := range l.spaces {
		for socket, queue := range l.Sockets.spaces[id].queues {
			owned, known := l.owned[owner{l.group, socket}]
			if owned {
				n = min(n+queue, math.MaxInt32)
			}
			unknown = unknown || !known
		}
	}
	switch {
	case !unknown:
	case l.denied && n == 0:
		return 0, fs.ErrPermission
	case l.more && n == 0:
		return 0, ErrTooMany
	case !l.denied && !l.more:
		for id := range l.spaces {
			for socket := range l.Sockets.spaces[id].queues {
				if k := (owner{l.group, socket}); !l.owned[k] {
					l.owned[k] = false // another's
				}
			}
		}
	}
	return n, nil
}

// listening reads the accept queues of a namespace that are not empty.
func listening(dir string) (map[uint64]int, error) {
	out := map[uint64]int{}
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(dir + name)
		if errors.Is(err, os.ErrNotExist) && name == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		err = Listening(f, out)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", dir, name, err)
		}
	}
	return out, nil
}

// Listening reads the accept queues that are not empty out of a file of TCP sockets, up to the
// first that does not listen. Its form (proc_net_tcp.rst) begins with a line of names; numbers
// are hexadecimal but for the last ones, state 0A listens, and rx_queue of such a socket is what
// waits to be accepted:
//
//	sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
//	 0: 0100007F:5F87 00000000:0000 0A 00000000:00000011 00:00000000 00000000 0   0       5771108 …
func Listening(r io.Reader, out map[uint64]int) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 8<<10), 8<<10)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			continue
		}
		if n > maxListening {
			return ErrTooMany
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			return trimtab.Invalidf("line %.80q: want ten fields", lines.Text())
		}
		if fields[3] != "0A" {
			return nil
		}
		_, rx, _ := strings.Cut(fields[4], ":")
		queue, err := strconv.ParseUint(rx, 16, 31)
		inode, bad := strconv.ParseUint(fields[9], 10, 64)
		if err != nil || bad != nil {
			return trimtab.Invalidf("line %.80q: want a queue and the number of a socket", lines.Text())
		}
		if queue > 0 {
			out[inode] = int(queue)
		}
	}
	return lines.Err()
}
