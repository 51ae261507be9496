package waits_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func openRoot(t *testing.T, path string) *hostfs.Root {
	t.Helper()
	r, err := hostfs.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestThreadsOfAGroupAndThoseBeneathItAreRead(t *testing.T) {
	root, proc := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "a/cgroup.threads"), "1\n2\n99\nx\n")
	write(t, filepath.Join(root, "a/b/cgroup.threads"), "3\n")
	for tid := 1; tid <= 3; tid++ {
		write(t, filepath.Join(proc, fmt.Sprint(tid), "schedstat"), fmt.Sprintf("%d %d 7\n", 10*tid, tid))
	}
	r := openRoot(t, root)
	read := func(group string, threads int, runs bool) (map[int]waits.Thread, error) {
		all := &waits.Threads{Proc: proc}
		all.Begin(threads)
		return all.Read(r, group, runs)
	}
	got, err := read("a", 10, true)
	if diff := cmp.Diff(map[int]waits.Thread{1: {Ran: 10, Waited: 1}, 2: {Ran: 20, Waited: 2}, 3: {Ran: 30, Waited: 3}}, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	write(t, filepath.Join(root, "idle/cgroup.threads"), "")
	if got, err := read("idle", 10, false); err != nil || len(got) != 0 {
		t.Errorf("none: %v, %v", got, err)
	}
	for name, c := range map[string]struct {
		threads string
		runs    bool
		want    error
	}{
		"it runs, and has none that can be seen":    {"", true, waits.ErrUnseen},
		"one is in another namespace of processes":  {"1\n0\n", false, waits.ErrUnseen},
		"none is in /proc":                          {"97\n98\n", false, waits.ErrUnseen},
		"more than may be read":                     {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", true, waits.ErrTooMany},
		"a list that is longer than what is read":   {strings.Repeat("1234567\n", 9000), true, waits.ErrTooMany},
		"one of many directories without a process": {"dirs", false, waits.ErrTooMany},
	} {
		if c.threads == "dirs" {
			for i := range 250 {
				write(t, filepath.Join(root, "of", fmt.Sprint(i), "cgroup.threads"), "")
			}
			c.threads = ""
		}
		write(t, filepath.Join(root, "of/cgroup.threads"), c.threads)
		if _, err := read("of", 10, c.runs); !errors.Is(err, c.want) || errors.Is(err, fs.ErrPermission) != errors.Is(c.want, waits.ErrUnseen) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		os.RemoveAll(filepath.Join(root, "of"))
	}
	if _, err := read("gone", 10, true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
}

func TestWhatIsReadOfThreadsAndDirectoriesInARoundIsBounded(t *testing.T) {
	root, proc := t.TempDir(), t.TempDir()
	for tid := 1; tid <= 8; tid++ {
		write(t, filepath.Join(root, fmt.Sprint("few", tid), "cgroup.threads"), fmt.Sprintln(tid))
		write(t, filepath.Join(proc, fmt.Sprint(tid), "schedstat"), "1 2 3\n")
	}
	write(t, filepath.Join(root, "many/cgroup.threads"), "1\n2\n3\n4\n5\n6\n7\n")
	write(t, filepath.Join(root, "wide/cgroup.threads"), "")
	for i := range 150 {
		write(t, filepath.Join(root, "wide", fmt.Sprint(i), "cgroup.threads"), "")
	}
	r, all := openRoot(t, root), &waits.Threads{Proc: proc}
	all.Begin(7)
	for _, c := range []struct {
		group string
		want  error
	}{{"few1", nil}, {"many", waits.ErrLater}, {"few2", nil}, {"wide", nil}, {"wide", waits.ErrLater}} {
		if _, err := all.Read(r, c.group, false); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v: what is not read of one is left for the others", c.group, err, c.want)
		}
	}
}

// sockets is a file of TCP sockets of the kernel's form.
func sockets(lines ...string) string {
	return "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" + strings.Join(lines, "")
}

// listener is a line of a socket that listens.
func listener(queue, inode int) string {
	return fmt.Sprintf("   0: 0100007F:5F87 00000000:0000 0A 00000000:%08X 00:00000000 00000000     0        0 %d 2 000000002766d71e 100 0 0 10 0\n", queue, inode)
}

const connection = "   9: 0100007F:5F87 0100007F:9999 01 00000000:00000063 00:00000000 00000000     0        0 99 1 00000000eb3d24fc 20 4 30 10 -1\n"

func TestAcceptQueuesAreReadUpToTheFirstSocketThatDoesNotListen(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[uint64]int
		bad  bool
	}{
		"none listens":         {text: sockets(connection)},
		"nothing waits":        {text: sockets(listener(0, 7))},
		"some wait":            {text: sockets(listener(17, 7), listener(0, 8), listener(2, 9), connection, "nonsense\n"), want: map[uint64]int{7: 17, 9: 2}},
		"a line that is cut":   {text: sockets("   0: 0100007F:5F87 00000000:0000 0A\n"), bad: true},
		"a queue of no number": {text: sockets(strings.Replace(listener(1, 7), "00000001 00:", "zzzz 00:", 1)), bad: true},
		"a line of 1 MB":       {text: sockets(strings.Repeat("x", 1<<20)), bad: true},
		"empty":                {},
		"too many":             {text: sockets(strings.Repeat(listener(1, 7), 5000)), bad: true},
	} {
		got := map[uint64]int{}
		if err := waits.Listening(strings.NewReader(c.text), got); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == nil {
			c.want = map[uint64]int{}
		}
		if diff := cmp.Diff(c.want, got); diff != "" && !c.bad {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// process is one in a tree of /proc.
type process struct {
	pid     int
	tcp     string
	sockets []int
}

// tree makes a group with processes, and what the kernel tells of them. The files of one
// namespace are one file.
func tree(t *testing.T, host string, all ...process) (root *hostfs.Root, proc string) {
	t.Helper()
	dir, proc := t.TempDir(), t.TempDir()
	pids, spaces := "", map[string]string{}
	all = append([]process{{pid: 1, tcp: host}}, all...)
	for _, p := range all {
		of := filepath.Join(proc, fmt.Sprint(p.pid))
		if spaces[p.tcp] == "" {
			spaces[p.tcp] = filepath.Join(of, "net/tcp")
			write(t, spaces[p.tcp], p.tcp)
		} else if err := errors.Join(os.MkdirAll(filepath.Join(of, "net"), 0o755), os.Link(spaces[p.tcp], filepath.Join(of, "net/tcp"))); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(of, "fd/0"), "")
		for i, s := range p.sockets {
			if err := os.Symlink(fmt.Sprintf("socket:[%d]", s), filepath.Join(of, "fd", fmt.Sprint(3+i))); err != nil {
				t.Fatal(err)
			}
		}
		if p.pid != 1 {
			pids += fmt.Sprintln(p.pid)
		}
	}
	if err := os.Symlink("1", filepath.Join(proc, "self")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a/cgroup.procs"), pids)
	return openRoot(t, dir), proc
}

func queued(root *hostfs.Root, s *waits.Sockets) (int, error) {
	s.Begin(100)
	return s.Queued(root, "a")
}

func TestOfTheSocketsOfANamespaceThoseOfTheGroupCount(t *testing.T) {
	host := sockets(listener(17, 7), listener(30, 8))
	for name, c := range map[string]struct {
		all  []process
		want int
		err  error
	}{
		"its own":                               {all: []process{{10, host, []int{5, 7}}}, want: 17},
		"shared by two of its processes":        {all: []process{{10, host, []int{7}}, {11, host, []int{7}}}, want: 17},
		"that of another process":               {all: []process{{10, host, []int{5}}}},
		"in a namespace of its own":             {all: []process{{10, sockets(listener(3, 9)), []int{9}}}, want: 3},
		"in that of the host, too":              {all: []process{{10, sockets(listener(3, 9)), []int{9}}, {11, host, []int{8}}}, want: 33},
		"without connections":                   {all: []process{{10, sockets(listener(0, 9)), []int{9}}}},
		"in two, which have turns of their own": {all: []process{{10, sockets(listener(3, 9)), []int{9}}, {11, sockets(listener(4, 10)), []int{10}}}, err: waits.ErrTooMany},
		"of a group without a process":          {err: os.ErrNotExist},
		"of a file that is not the kernel's":    {all: []process{{10, sockets("what\n"), nil}}, err: errors.ErrUnsupported},
	} {
		root, proc := tree(t, host, c.all...)
		s := &waits.Sockets{Proc: proc}
		for round := range 3 { // the second knows whose they are
			got, err := queued(root, s)
			if got != c.want || (err != nil) != (c.err != nil) || !errors.Is(c.err, errors.ErrUnsupported) && !errors.Is(err, c.err) {
				t.Errorf("%s, round %d: %d, %v; want %d, %v", name, round, got, err, c.want, c.err)
			}
		}
	}
}

func TestWhatIsNotSeenWholeIsMissingAndNotZero(t *testing.T) {
	host := sockets(listener(17, 7))
	var many []int
	for i := range 150 {
		many = append(many, 1000+i)
	}
	root, proc := tree(t, host, process{10, host, many}, process{11, host, nil})
	s := &waits.Sockets{Proc: proc}
	if n, err := queued(root, s); !errors.Is(err, waits.ErrTooMany) {
		t.Errorf("%d, %v: its first descriptors are others", n, err)
	}
	write(t, filepath.Join(root.Path(), "b/cgroup.procs"), "11\n")
	if n, err := s.Queued(root, "b"); n != 0 || err != nil {
		t.Errorf("%d, %v: the first took a quarter of what may be read", n, err)
	}
	for range 2 {
		_, _ = s.Queued(root, "a")
	}
	if n, err := s.Queued(root, "a"); !errors.Is(err, waits.ErrLater) {
		t.Errorf("%d, %v: nothing is left for it", n, err)
	}
	for text, want := range map[string]error{"10\n": waits.ErrUnseen, "0\n": waits.ErrUnseen, "": os.ErrNotExist} {
		write(t, filepath.Join(root.Path(), "c/cgroup.procs"), text)
		unseen := &waits.Sockets{Proc: filepath.Join(proc, "none")}
		unseen.Begin(100)
		if n, err := unseen.Queued(root, "c"); !errors.Is(err, want) {
			t.Errorf("processes %q: %d, %v: want %v", text, n, err, want)
		}
	}
}

// Two groups have sockets of one namespace, and a process of none has one.
func TestASocketIsOneGroupsAndWhoseItIsIsNotLookedForAgain(t *testing.T) {
	host := sockets(listener(17, 7), listener(5, 8), listener(2, 9))
	root, proc := tree(t, host, process{10, host, []int{7}}, process{11, host, []int{7, 8}}, process{12, host, []int{9}})
	write(t, filepath.Join(root.Path(), "a/cgroup.procs"), "10\n")
	write(t, filepath.Join(root.Path(), "b/cgroup.procs"), "11\n")
	s := &waits.Sockets{Proc: proc}
	for round := range 3 {
		if s.Begin(100); round == 2 {
			os.RemoveAll(filepath.Join(proc, "10/fd"))
		}
		for group, want := range map[string]int{"a": 17, "b": 5} {
			if group == "b" && round == 0 {
				continue // it comes second
			}
			if n, err := s.Queued(root, group); n != want || err != nil {
				t.Errorf("round %d, %s: %d, %v: want %d", round, group, n, err, want)
			}
		}
	}
}

// As nobody, in one thread of its own: root may read all.
func TestWithoutTheRightToReadDescriptorsSocketsOfANamespaceOfItsOwnCount(t *testing.T) {
	host, own := sockets(listener(17, 7)), sockets(listener(3, 9), listener(2, 10))
	shared, sharedProc := tree(t, host, process{10, host, []int{7}})
	apart, apartProc := tree(t, host, process{10, own, []int{9}})
	for _, proc := range []string{sharedProc, apartProc} {
		if err := os.Chmod(filepath.Join(proc, "10/fd"), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(proc, "10/fd"), 0o700) })
		for dir := proc; dir != os.TempDir(); dir = filepath.Dir(dir) {
			os.Chmod(dir, 0o755)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this
		if os.Getuid() == 0 {
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
				t.Errorf("become nobody: %v", e)
			}
		}
		if n, err := queued(shared, &waits.Sockets{Proc: sharedProc}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("in the namespace of the host: %d, %v", n, err)
		}
		if n, err := queued(apart, &waits.Sockets{Proc: apartProc}); n != 5 || err != nil {
			t.Errorf("in a namespace of its own: %d, %v", n, err)
		}
	}()
	<-done
}

// This process listens and does not accept: its queue fills. By netlink, and by the file.
func TestARealAcceptQueueFillsAndIsTheGroups(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/cgroup.procs"), fmt.Sprintln(os.Getpid()))
	root, here, file := openRoot(t, dir), &waits.Sockets{}, &waits.Sockets{Proc: "/proc"}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue // a host without IPv6
		}
		var open []net.Conn
		for n := range 8 {
			for how, s := range map[string]*waits.Sockets{"netlink": here, "file": file} {
				if got, err := queued(root, s); got != n || err != nil {
					t.Fatalf("by %s: %d, %v: want %d", how, got, err, n)
				}
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := queued(root, here); got != 7 || err != nil {
			t.Errorf("%d, %v: want 7 after one was accepted", got, err)
		}
		for _, c := range append(open, c) {
			c.Close()
		}
		l.Close()
	}
}

// apart names the environment variable that makes this program a service in a network namespace of
// its own, in whose queue three connections wait.
const apart = "TRIMTAB_TEST_APART"

func TestAServiceInANamespaceOfItsOwn(t *testing.T) {
	if os.Getenv(apart) == "" {
		t.Skip("it is a process of another test")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	if lo.SetUint16(unix.IFF_UP); unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo) != nil {
		t.Fatal("lo cannot be set up")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("they wait")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the other test ends
}

func TestARealAcceptQueueInAnotherNamespaceIsRead(t *testing.T) {
	service := exec.Command(os.Args[0], "-test.run=^TestAServiceInANamespaceOfItsOwn$")
	service.Env = append(os.Environ(), apart+"=1")
	service.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := service.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Skipf("no namespace can be made: %v", err)
	}
	defer func() {
		in.Close()
		service.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "they wait\n" {
		t.Fatalf("%q, %v", line, err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/cgroup.procs"), fmt.Sprintln(service.Process.Pid))
	root, s := openRoot(t, dir), &waits.Sockets{}
	for range 3 {
		if n, err := queued(root, s); n != 3 || err != nil {
			t.Errorf("%d, %v: want the three of the other namespace", n, err)
		}
	}
}

func TestOneNamespaceIsReadInARoundAndEachHasItsTurn(t *testing.T) {
	host := sockets(listener(17, 7))
	var all []process
	for i := range 8 {
		all = append(all, process{10 + i, sockets(listener(1+i, 90+i)), []int{90 + i}})
	}
	root, proc := tree(t, host, all...)
	dir := root.Path()
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprint("of", i), "cgroup.procs"), fmt.Sprintln(10+i))
	}
	s, known := &waits.Sockets{Proc: proc}, map[int]int{}
	for range 40 {
		s.Begin(100)
		for i := range 8 {
			if n, err := s.Queued(root, fmt.Sprint("of", i)); err == nil && n == 1+i {
				known[i]++
			} else if !errors.Is(err, waits.ErrTurn) {
				t.Fatalf("%d: %d, %v", i, n, err)
			}
		}
	}
	for i := range 8 {
		if known[i] != 5 {
			t.Errorf("%d was known in %d of 40 rounds: want one of 8", i, known[i])
		}
	}
}

// In each round another container begins, and is asked for first.
func TestNewNamespacesWaitTheirTurn(t *testing.T) {
	var all []process
	for i := range 40 {
		all = append(all, process{10 + i, sockets(listener(1+i, 90+i)), []int{90 + i}})
	}
	root, proc := tree(t, sockets(), all...)
	for i := range 40 {
		write(t, filepath.Join(root.Path(), fmt.Sprint("of", i), "cgroup.procs"), fmt.Sprintln(10+i))
	}
	s, known := &waits.Sockets{Proc: proc}, map[int]int{}
	for round := range 30 {
		s.Begin(1000)
		for i := range 2 { // the last one is as old as the first
			for _, k := range []int{10 + round, i} {
				if n, err := s.Queued(root, fmt.Sprint("of", k)); err == nil && n == 1+k {
					known[k]++
				}
			}
		}
	}
	if known[0] < 5 || known[1] < 5 {
		t.Errorf("the old ones were known in %d and %d of 30 rounds", known[0], known[1])
	}
}

func FuzzParsersAreTotal(f *testing.F) {
	for _, s := range []string{"744035 119897 3\n", "1 2", "-1 2 3", "18446744073709551615 1 1", sockets(listener(17, 7), connection), "\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := waits.ParseThread(text); err == nil && (v.Ran > math.MaxInt64 || v.Waited > math.MaxInt64) {
			t.Errorf("%q: %+v", text, v)
		}
		queues := map[uint64]int{}
		if err := waits.Listening(strings.NewReader(text), queues); err == nil {
			for socket, n := range queues {
				if n <= 0 {
					t.Errorf("%q: %d of %d", text, n, socket)
				}
			}
		}
		if _, err := waits.ParseDiag([]byte(text), queues); err == nil && slices.Min(append(slices.Collect(maps.Values(queues)), 1)) <= 0 {
			t.Errorf("%q: %v", text, queues)
		}
	})
}
