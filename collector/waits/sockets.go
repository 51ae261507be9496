package waits

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// maxProcesses is the largest number of processes of a group that are searched for its sockets;
	// maxFiles is that of descriptors of each process, whose listening sockets are usually opened
	// first. maxListening bounds the listening sockets of a namespace.
	maxProcesses, maxFiles, maxListening = 64, 1024, 4096
	// remembered is the number of rounds for which the owner of a socket is remembered; maxOwners
	// is the largest number of such sockets.
	remembered, maxOwners = 30, 20_000
	// askedAgain is the number of rounds after which netlink is tried again when it failed:
	// minutes.
	askedAgain = 60
)

// Sockets reads the accept queues of control groups.
type Sockets struct {
	// Proc is where procfs is mounted; "": /proc.
	Proc string
	// left is how many descriptors and processes may still be read in this round, most how many
	// of one group, dirs in how many directories processes may be searched.
	left, most, dirs int
	// spaces are the network namespaces that were recently needed; turn is the one whose file is
	// read in this round, 0: the first one needed. self is this process's, first that of the
	// first process.
	spaces            map[uint64]*space
	turn, self, first uint64
	// owners has the groups of sockets with a queue; looked has the last round in which a group's
	// sockets were read.
	owners map[uint64]owner
	looked map[string]int
	round  int
	// ask asks netlink, nil: [listeningHere], from the round again on.
	ask   func() (map[uint64]int, error)
	again int
}

// space are the accept queues of a network namespace that are not empty, by the number of
// the socket.
type space struct {
	queues map[uint64]int
	err    error
	// read is the round in which it was read last, asked in which it was asked for, since from
	// which on it waits for its turn.
	read, asked, since int
}

// owner is the group to which a socket belongs, "": unknown, and the round since which this is
// known.
type owner struct {
	group string
	since int
}

// Begin begins a round, in which at most files descriptors may be read.
func (s *Sockets) Begin(files int) {
	if s.round++; s.round%remembered == 1 || len(s.owners) > maxOwners {
		s.owners, s.looked = map[uint64]owner{}, map[string]int{}
	}
	if s.spaces == nil {
		s.spaces = map[uint64]*space{}
	}
	s.left, s.most, s.dirs = files, files/4, max(maxDirs, files/8)
	s.self, _ = s.spaceOf("self")
	s.first, _ = s.spaceOf("1")
	s.turn = 0
	for _, id := range slices.Sorted(maps.Keys(s.spaces)) {
		in, next := s.spaces[id], s.spaces[s.turn]
		switch {
		case s.round-in.asked > remembered:
			delete(s.spaces, id)
		case id == s.self || in.asked < s.round-1: // it is not its turn, or no group needs it now
		case next == nil || cmp.Or(cmp.Compare(in.since, next.since), cmp.Compare(in.read, next.read)) < 0:
			s.turn = id
		}
	}
}

// Queued returns how many connections wait to be accepted by the processes of a group and of the
// groups beneath it.
func (s *Sockets) Queued(root *hostfs.Root, group string) (n int, err error) {
	l := look{Sockets: s, group: group, left: min(s.most, s.left), short: s.left < s.most, spaces: map[uint64]*space{}, whole: map[uint64]bool{}}
	before := l.left
	if err = l.processes(root); err == nil {
		n, err = l.sum()
	}
	if s.left -= before - max(l.left, 0); err != nil {
		return 0, fmt.Errorf("read sockets of %s: %w", group, err)
	}
	return n, nil
}

// look is a look at the sockets of one group.
type look struct {
	*Sockets
	group string
	// descriptors and processes that may still be read; short: fewer than usual
	left  int
	short bool
	// spaces are the namespaces that its processes have; of those in whole all sockets are its.
	spaces map[uint64]*space
	whole  map[uint64]bool
	// denied says that the descriptors of a process may not be read; unseen, that a process is not
	// visible; more, that there are more than may be read.
	denied, unseen, more bool
}

// processes looks at the processes of the group.
func (l *look) processes(root *hostfs.Root) error {
	var all []int
	err := Numbers(root, l.group, "cgroup.procs", &l.dirs, func(pid int) error {
		switch {
		case pid == 0:
			l.unseen = true
			return nil
		case len(all) == maxProcesses:
			return ErrTooMany
		}
		all = append(all, pid)
		return nil
	})
	if l.more = errors.Is(err, ErrTooMany); err != nil && !l.more {
		return err
	}
	seen := 0
	for _, pid := range all {
		if l.left--; l.left < 0 {
			l.more = true
			break
		}
		id, ok := l.spaceOf(strconv.Itoa(pid))
		if !ok {
			continue // the process ended, or is hidden
		}
		seen++
		if err := l.process(pid, id); err != nil {
			return err
		}
	}
	l.unseen = l.unseen || !l.more && 2*seen < len(all)
	switch {
	case len(l.spaces) > 0:
		return nil
	case l.more:
		return l.tooMany()
	case l.unseen:
		return ErrUnseen
	}
	return fmt.Errorf("it has no process: %w", os.ErrNotExist)
}

// process looks which sockets a process has. One that ended has none.
func (l *look) process(pid int, id uint64) error {
	if l.spaces[id] == nil && id != l.self && len(l.spaces) > 0 && (len(l.spaces) > 1 || l.spaces[l.self] == nil) {
		return ErrTooMany // in a second namespace, which has another turn
	}
	in := l.in(id, pid)
	if in == nil {
		return nil
	}
	if l.spaces[id] = in; in.err != nil || l.whole[id] || !l.unknown(id) {
		return in.err
	}
	err := l.files(pid, in)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if id == l.self || id == l.first {
		l.denied = true
	} else {
		l.whole[id] = true
	}
	return nil
}

// in returns the sockets of a namespace, by a process in it; nil: that process ended. Reading a
// namespace's file takes 2 ms, since the kernel searches its tables of all namespaces: one is
// read in each round, in turn, and this process's own if netlink does not answer.
func (s *Sockets) in(id uint64, pid int) *space {
	in := s.spaces[id]
	if in == nil {
		in = &space{since: s.round}
		s.spaces[id] = in
	}
	if in.asked = s.round; in.read == s.round {
		return in
	}
	if id == s.self && s.Proc == "" && s.round >= s.again {
		ask := s.ask
		if ask == nil {
			ask = listeningHere
		}
		if in.queues, in.err = ask(); in.err == nil || errors.Is(in.err, ErrTooMany) {
			in.read = s.round
			return in
		}
		s.again = s.round + askedAgain
	}
	if s.turn == 0 && id != s.self {
		s.turn = id
	}
	if id != s.self && id != s.turn {
		in.queues, in.err = nil, ErrTurn
		return in
	}
	queues, err := listening(procOf(s.Proc) + "/" + strconv.Itoa(pid) + "/net/")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	*in = space{queues, err, s.round, s.round, s.round}
	return in
}

// spaceOf identifies the network namespace of a process by the inode of a file that each
// namespace has: reading the namespace's link takes more rights.
func (s *Sockets) spaceOf(process string) (id uint64, ok bool) {
	var st unix.Stat_t
	err := unix.Stat(procOf(s.Proc)+"/"+process+"/net/tcp", &st)
	return st.Ino, err == nil
}

// unknown reports whether a namespace has a queue that may or may not belong to the group.
func (l *look) unknown(id uint64) (some bool) {
	looked, once := l.looked[l.group]
	for socket := range l.spaces[id].queues {
		o, known := l.owners[socket]
		if !known {
			o = owner{since: l.round}
			l.owners[socket] = o
		}
		some = some || o.group == "" && !(once && looked >= o.since)
	}
	return some
}

// tooMany returns why a group cannot be read completely.
func (l *look) tooMany() error {
	if l.short {
		return ErrLater
	}
	return ErrTooMany
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
	most := min(maxFiles, l.left)
	names, err := f.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(names) > most {
		names, l.more = names[:most], true
	}
	l.left -= len(names)
	for _, name := range names {
		link, err := os.Readlink(dir + "/" + name)
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		number, socket := strings.CutPrefix(link, "socket:[")
		if err != nil || !socket {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil && in.queues[n] > 0 && l.owners[n].group == "" {
			l.owners[n] = owner{l.group, l.round}
		}
	}
	return nil
}

// sum returns the sum of the group's queues. It fails if there are none and the owners of other
// queues are unknown.
func (l *look) sum() (n int, err error) {
	unknown := l.unseen
	for id, in := range l.spaces {
		for socket, queue := range in.queues {
			if l.whole[id] || l.owners[socket].group == l.group {
				n = min(n+queue, math.MaxInt32)
			}
		}
		unknown = unknown || !l.whole[id] && l.unknown(id)
	}
	switch {
	case !unknown:
	case !l.unseen && !l.denied && !l.more:
		l.looked[l.group] = l.round // the others are not its
	case n > 0: // at least this many
	case l.unseen:
		return 0, ErrUnseen
	case l.denied:
		return 0, fs.ErrPermission
	default:
		return 0, l.tooMany()
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

// Listening reads the non-empty accept queues in a file of TCP sockets, up to the first that does
// not listen. Its form (proc_net_tcp.rst) begins with a line of names; numbers are hexadecimal
// but for the last ones, state 0A listens, and rx_queue of such a socket is what waits to be
// accepted:
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
