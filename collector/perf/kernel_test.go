package perf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
)

// TestMain is also the process that counts, and those that are counted.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "as-") {
		leak.Main(m)
		return
	}
	var err error
	switch os.Args[1] {
	case "as-counter":
		if err = Confine(); err == nil {
			err = Serve(os.Args[2], os.Stdin, os.Stdout)
		}
	case "as-privileged-counter": // as it would be without Confine
		err = Serve(os.Args[2], os.Stdin, os.Stdout)
	case "as-dead":
	case "as-no-counter":
		fmt.Println(`{"lacks":["count task-clock on CPU 0: permission denied"]}`)
		_, err = io.Copy(io.Discard, os.Stdin)
	case "as-status":
		if err = Confine(); err == nil {
			var text []byte
			text, err = os.ReadFile("/proc/self/status")
			os.Stdout.Write(text)
		}
	case "as-work":
		err = work(os.Args[2])
	case "as-parent":
		err = parent()
	case "as-echo":
		_, err = io.Copy(os.Stdout, os.Stdin)
	case "as-mute":
		_, err = io.Copy(io.Discard, os.Stdin)
	case "as-liar":
		fmt.Println(`{"software":["task-clock"]}`)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(`{"seq":1,"groups":[{"window_ns":1,"software":{"counts":[-1]},"hardware":{"missing":"absent"}}]}`)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The work that one line of input asks for.
const (
	burns   = 200 * time.Millisecond
	touches = 20_000 // many times what the runtime of a worker has by itself
)

// work waits for a line, works, says so, and waits for the next. It keeps to one thread: time of
// one that was born between two looks counts for neither.
func work(what string) error {
	runtime.LockOSThread()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch what {
		case "busy":
			for end := used() + burns; used() < end; {
				continue
			}
		case "faults":
			if err := touch(); err != nil {
				return err
			}
		}
		fmt.Println("done")
	}
	return nil
}

// used is the CPU time of this process, so that what it takes to burn is independent of
// what else runs.
func used() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// touch has the kernel bring in so many pages.
func touch() error {
	size := touches * os.Getpagesize()
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil {
		return err
	}
	for i := 0; i < size; i += os.Getpagesize() {
		b[i] = 1
	}
	return unix.Munmap(b)
}

// parent has a process count, and says which.
func parent() error {
	h := &helper{command: []string{os.Args[0], "as-counter", ""}, started: func() {}}
	if err := h.start(context.Background()); err != nil {
		return err
	}
	fmt.Println(h.process.Process.Pid)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// outlet keeps the samples.
type outlet struct {
	mu  sync.Mutex
	all []*trimtab.Sample
	// full is called when there are so many.
	most int
	full func()
}

// after calls f when there are n samples.
func (o *outlet) after(n int, f func()) { o.most, o.full = n, f }

func (o *outlet) Publish(_ context.Context, v trimtab.Value) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, v.(*trimtab.Sample))
	if o.full != nil && len(o.all) == o.most {
		o.full()
	}
	return nil
}

// take returns what came since the last call, by workload, instance and quantity.
func (o *outlet) take(t *testing.T) map[string]trimtab.Sample {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]trimtab.Sample{}
	for _, s := range o.all {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		out[fmt.Sprintf("%s/%s %s", s.Workload, s.Instance, s.Quantity)] = *s
	}
	o.all = nil
	return out
}

func lines(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// cgroup2 makes a group of version 2; the test is skipped where that cannot be.
func cgroup2(t testing.TB, name string) (root, path string) {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
			return root, mkdir(t, root, name)
		}
	}
	t.Skip("no hierarchy of version 2 is mounted")
	return "", ""
}

func mkdir(t testing.TB, root, name string) string {
	t.Helper()
	path := fmt.Sprintf("trimtab-perf-%d-%s", os.Getpid(), name)
	if err := os.Mkdir(filepath.Join(root, path), 0o755); err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(root, path)) })
	return path
}

// worker starts a process in control groups; do has it work once.
func worker(t *testing.T, what string, groups ...string) (do func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "as-work", what)
	in, err := cmd.StdinPipe()
	out, bad := cmd.StdoutPipe()
	if err := errors.Join(err, bad, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	for _, g := range groups {
		if err := os.WriteFile(filepath.Join(g, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	answers := bufio.NewReader(out)
	return func() {
		if _, err := fmt.Fprintln(in, "go"); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
}

// collected is a reader, and what polls it.
type collected struct {
	*reader
	poller *poll.Poller
}

func (k collected) round(ctx context.Context) { k.poller.Round(ctx) }

// collecting polls real groups of the hierarchy that is counted ("": found); the test is skipped
// where software events are not counted.
func collecting(t testing.TB, counted string, c poll.Config) (collected, *outlet) {
	t.Helper()
	o := &outlet{}
	c.Host, c.Bus = "h", o
	if c.Helper == nil {
		c.Helper = []string{os.Args[0], "as-counter"}
	}
	var k collected
	s := from(counted)
	s.Open = func(c poll.Config) (_ poll.Reader, err error) {
		k.reader, err = open(counted, c)
		return k.reader, err
	}
	var err error
	if k.poller, err = poll.Open(s, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.poller.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(k.helper.able.Software) == 0 && k.helper.process != nil {
		t.Skipf("this kernel or user counts nothing: %s", strings.Join(k.Unavailable(), "; "))
	}
	return k, o
}

func TestTheProbeSaysWhatThisKernelCounts(t *testing.T) {
	a, err := Probe(t.Context(), []string{os.Args[0], "as-counter"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v; lacks: %s", a, strings.Join(a.Missing, "; "))
	if len(a.Software) == 0 && len(a.Missing) == 0 || len(a.Hardware) == 0 && len(a.Missing) == 0 {
		t.Errorf("%+v: what is not there has no reason", a)
	}
	// The truth, by other means: CPUs with counters that Linux may use show a device.
	_, err = os.Stat("/sys/bus/event_source/devices/cpu")
	if pmu := err == nil; len(a.Hardware) > 0 && !pmu {
		t.Errorf("%v are counted by no device", a.Hardware)
	}
}

func TestABusyLoopAndPageFaultsOfRealGroupsAreCounted(t *testing.T) {
	root, busy := cgroup2(t, "busy")
	faulty := mkdir(t, root, "faulty")
	c, o := collecting(t, "", poll.Config{Root: root, Targets: []poll.Target{{Workload: "busy", Path: busy}, {Workload: "faulty", Path: faulty}}})
	burn, fault := worker(t, "busy", filepath.Join(root, busy)), worker(t, "faults", filepath.Join(root, faulty))
	c.round(t.Context())
	for name, s := range o.take(t) {
		if s.Missing == "" {
			t.Errorf("%s has a value at first: %v", name, s.Value)
		}
	}
	burn()
	fault()
	c.round(t.Context())
	got := o.take(t)
	seconds := float64(got["busy/ task_clock"].Window)
	if s := got["busy/ task_clock"]; s.Missing != "" || s.Source != "perf" || s.Value*seconds < 0.8*burns.Seconds() || s.Value > float64(len(helperCPUs(t))) {
		t.Errorf("busy for %v: %+v", burns, s)
	}
	if s := got["faulty/ page_faults"]; s.Missing != "" || s.Value*seconds < touches {
		t.Errorf("%d faults: %+v", touches, s)
	}
	if s := got["busy/ page_faults"]; s.Missing != "" || s.Value*seconds > touches/2 {
		t.Errorf("faults of the other group: %+v", s)
	}
	if s := got["faulty/ context_switches"]; s.Missing != "" || !(s.Value*seconds >= 1) {
		t.Errorf("it waited for its input: %+v", s)
	}
	if s := got["busy/ run_delay"]; s.Missing != "" || s.Source != "schedstat" || s.Value > 1 {
		t.Errorf("run queue: %+v", s)
	}
	for _, name := range []string{"busy/ cpi", "busy/ mpki", "busy/ rpki"} {
		if s := got[name]; len(c.helper.able.Hardware) == 0 && s.Missing != notCounted || len(c.helper.able.Hardware) == len(hardware()) && s.Missing != "" {
			t.Errorf("%s: %+v, able %v", name, s, c.helper.able)
		}
	}
	if s := got[".host/ context_switches"]; s.Missing != "" || !(s.Value > 0) {
		t.Errorf("host: %+v", s)
	}
}

func helperCPUs(t *testing.T) []int {
	t.Helper()
	cpus, err := onlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

func TestAVersion1GroupIsCountedByItsTwinOnlyWhereThatHasItsTasks(t *testing.T) {
	const cpu = "/sys/fs/cgroup/cpu"
	root, err := hostfs.OpenRoot(cpu)
	if err != nil || root.Filesystem() != hostfs.Cgroup1 {
		t.Skip("no cpu hierarchy of version 1")
	}
	root.Close()
	path := mkdir(t, cpu, "twin")
	c, o := collecting(t, "", poll.Config{Root: cpu, Targets: []poll.Target{{Workload: "w", Path: path}}})
	if c.counted == nil {
		t.Skip("no hierarchy beside it is counted")
	}
	burn := worker(t, "busy", filepath.Join(cpu, path))
	c.round(t.Context())
	c.round(t.Context())
	if s := o.take(t)["w/ task_clock"]; s.Missing != poll.Absent {
		t.Errorf("no twin: %+v", s)
	}
	// A twin that its processes are not in does not say that nothing runs.
	if err := os.Mkdir(filepath.Join(c.counted.Path(), path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(c.counted.Path(), path)) }) // after the workers
	c.round(t.Context())
	burn()
	c.round(t.Context())
	got := o.take(t)
	if s := got["w/ context_switches"]; s.Missing != elsewhere {
		t.Errorf("an empty twin: %+v", s)
	}
	if s := got["w/ run_delay"]; s.Missing != "" {
		t.Errorf("run queue: %+v", s)
	}
	burn = worker(t, "busy", filepath.Join(cpu, path), filepath.Join(c.counted.Path(), path))
	c.round(t.Context())
	burn()
	c.round(t.Context())
	if s := o.take(t)["w/ task_clock"]; s.Missing != "" || s.Value*float64(s.Window) < 0.8*burns.Seconds() {
		t.Errorf("a twin that has it: %+v", s)
	}
}

func TestAGroupThatGoesIsToldOnceAndOneOfItsNameBeginsAnew(t *testing.T) {
	root, path := cgroup2(t, "gone")
	c, o := collecting(t, "", poll.Config{Root: root, Targets: []poll.Target{{Workload: "w", Path: path}}})
	c.round(t.Context())
	c.round(t.Context())
	if s := o.take(t)["w/ context_switches"]; s.Missing != "" || s.Value != 0 {
		t.Errorf("an empty group: %+v", s)
	}
	if err := os.Remove(filepath.Join(root, path)); err != nil {
		t.Fatal(err)
	}
	c.round(t.Context())
	if got := o.take(t); got["w/ context_switches"].Missing != poll.Absent || got["w/ run_delay"].Missing != poll.Absent {
		t.Errorf("gone: %+v", got)
	}
	c.round(t.Context())
	if s, told := o.take(t)["w/ context_switches"]; told {
		t.Errorf("told again: %+v", s)
	}
	if err := os.Mkdir(filepath.Join(root, path), 0o755); err != nil {
		t.Fatal(err)
	}
	c.round(t.Context())
	if s := o.take(t)["w/ context_switches"]; s.Missing != poll.First {
		t.Errorf("another of its name: %+v", s)
	}
}

// status is what the kernel says of a process that has called [Confine].
func status(t *testing.T, as *syscall.SysProcAttr) map[string]string {
	t.Helper()
	// Not its path, which another user may not be able to reach.
	cmd := exec.Command("/proc/self/exe", "as-status")
	cmd.SysProcAttr = as
	var why strings.Builder
	cmd.Stderr = &why
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, why.String())
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(rest)
	}
	return fields
}

func TestTheProcessThatCountsHasOneCapabilityAtMost(t *testing.T) {
	perfmon, none := fmt.Sprintf("%016x", 1<<unix.CAP_PERFMON), fmt.Sprintf("%016x", 0)
	had, err := capabilities()
	if err != nil {
		t.Fatal(err)
	}
	want := none
	if had&(1<<unix.CAP_PERFMON) != 0 {
		want = perfmon
	}
	check := func(who string, got map[string]string, effective string) {
		t.Helper()
		for _, name := range []string{"CapPrm", "CapEff"} {
			if got[name] != effective {
				t.Errorf("%s: %s %s, want %s", who, name, got[name], effective)
			}
		}
	}
	check("as we are", status(t, nil), want)
	if os.Geteuid() != 0 {
		t.Skip("only root can be others")
	}
	if root := status(t, nil); root["NoNewPrivs"] != "1" || !strings.HasPrefix(root["Uid"], "65534") || !strings.HasPrefix(root["Gid"], "65534") || root["Groups"] != "" || root["CapBnd"] != perfmon {
		t.Errorf("of root: %v", root)
	}
	someone := &syscall.Credential{Uid: 54321, Gid: 54321}
	check("a user with more", status(t, &syscall.SysProcAttr{Credential: someone, AmbientCaps: []uintptr{unix.CAP_PERFMON, unix.CAP_NET_RAW}}), perfmon)
	check("a user with another", status(t, &syscall.SysProcAttr{Credential: someone, AmbientCaps: []uintptr{unix.CAP_NET_RAW}}), none)
	check("a user with it", status(t, &syscall.SysProcAttr{Credential: someone, AmbientCaps: []uintptr{unix.CAP_PERFMON}}), perfmon)
	check("a user with none", status(t, &syscall.SysProcAttr{Credential: someone}), none)
}

func TestTheProcessThatCountsEndsWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0], "as-parent")
	in, err := cmd.StdinPipe()
	out, bad := cmd.StdoutPipe()
	if err := errors.Join(err, bad, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 60_000)
	for errors.Is(err, syscall.EINTR) {
		n, err = unix.Poll(poll, 60_000)
	}
	if n != 1 || err != nil {
		t.Errorf("process %d lives on: %d, %v", pid, n, err)
	}
}

func TestAProcessThatDiesIsStartedAgainAndTheValuesAreMissingMeanwhile(t *testing.T) {
	root, path := cgroup2(t, "dies")
	c, o := collecting(t, "", poll.Config{Root: root, Targets: []poll.Target{{Workload: "w", Path: path}}})
	c.round(t.Context())
	for range 2 {
		if err := c.helper.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.round(t.Context())
		c.round(t.Context()) // during the pause
		if got := o.take(t); got["w/ context_switches"].Missing != unanswered || c.helper.process != nil || c.helper.pause < firstPause {
			t.Errorf("it died: %+v", got)
		}
		c.helper.due = 0 // the pause is over
		c.round(t.Context())
		if s := o.take(t)["w/ context_switches"]; s.Missing != poll.First {
			t.Errorf("a new process: %+v", s)
		}
		c.round(t.Context())
		if s := o.take(t)["w/ context_switches"]; s.Missing != "" {
			t.Errorf("then: %+v", s)
		}
	}
}

func TestAProcessThatLiesIsEndedAndItsAnswerIsNotBelieved(t *testing.T) {
	root := t.TempDir()
	c, o := collecting(t, root, poll.Config{Root: root, Helper: []string{os.Args[0], "as-liar"}})
	c.round(t.Context())
	if s := o.take(t)[".host/ context_switches"]; s.Missing != unanswered || c.helper.process != nil {
		t.Errorf("%+v", s)
	}
}

func TestAProcessThatSaysNothingIsEndedWithTheContext(t *testing.T) {
	h := &helper{command: []string{os.Args[0], "as-mute"}, started: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.start(ctx); err == nil || h.process != nil {
		t.Errorf("error %v", err)
	}
}

func TestThePausesGrowToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &helper{}
		var pauses []time.Duration
		for range 8 {
			_ = h.back(nil)
			pauses = append(pauses, h.pause/time.Second)
		}
		if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; !slices.Equal(pauses, want) {
			t.Errorf("%d seconds", pauses)
		}
	})
}

func TestGroupsBeyondTheDescriptorsHaveNoValues(t *testing.T) {
	root, a := cgroup2(t, "a")
	b := mkdir(t, root, "b")
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	sw, hw, able := probe()
	if len(sw) == 0 {
		t.Skipf("this kernel or user counts nothing: %v", able.Missing)
	}
	s := &server{root: dir, sets: [2][]event{sw, hw}, open: map[group]*counters{}, room: len(helperCPUs(t)) * (len(sw) + len(hw))}
	defer s.clear()
	q := request{1, []group{{a, 1}, {b, 2}}}
	for _, want := range []string{poll.First, ""} {
		got := s.answer(q)
		if got.Groups[0].Software.Missing != want || got.Groups[1].Software.Missing != tooMany {
			t.Errorf("%+v", got)
		}
	}
	if got := s.answer(request{2, []group{{b, 2}}}); got.Groups[0].Software.Missing != poll.First || s.used != s.room {
		t.Errorf("room that was given back: %+v, %d of %d", got, s.used, s.room)
	}
	s.cpus = nil // as after a CPU came or went
	if got := s.answer(request{3, []group{{b, 2}}}); got.Groups[0].Software.Missing != poll.First {
		t.Errorf("other CPUs: %+v", got)
	}
	if got := s.answer(request{4, []group{{"../..", 2}, {"none", 3}}}); got.Groups[0].Software.Missing != poll.Unreadable || got.Groups[1].Software.Missing != poll.Absent || s.used != 0 {
		t.Errorf("paths that are none: %+v", got)
	}
}

func TestItCountsAtEachIntervalUntilItsEnd(t *testing.T) {
	root, _ := cgroup2(t, "interval")
	c, o := collecting(t, "", poll.Config{Root: root, Interval: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	o.after(20, cancel)
	if err := c.poller.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestWhereGroupsCannotBeReachedTheHostIsStillCounted(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, o := collecting(t, root, poll.Config{Root: root, Targets: []poll.Target{{Workload: "w", Path: "w"}}})
	c.round(t.Context())
	c.round(t.Context())
	got := o.take(t)
	if h, w := got[".host/ page_faults"], got["w/ page_faults"]; h.Missing != "" || w.Missing == "" {
		t.Errorf("host %+v, group that is none %+v", h, w)
	}
}
