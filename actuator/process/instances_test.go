package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// service is a directory with a supervisor as a process of its own, and its knob.
type service struct {
	*testing.T
	*process.Workers
	dir string
	cmd *exec.Cmd
}

// serve starts the supervisor of four workers, unless the directory says otherwise.
func serve(t *testing.T, dir string) *service {
	t.Helper()
	w, err := process.Open(process.Config{Root: dir, Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, Workers: w, dir: dir}
	s.start()
	return s
}

func (s *service) start() {
	s.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_SUPERVISE="+s.dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.cmd = cmd
	s.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	eventually(s.T, func() error { return s.Probe(s.Context()) })
}

// kill kills the supervisor, and with it its workers.
func (s *service) kill() {
	s.Helper()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// workers waits until so many run.
func (s *service) workers(n int) { s.Helper(); eventually(s.T, runs(s.Workers, n)) }

// asks returns nil where the file asks for so many.
func (s *service) asks(n float64) {
	s.Helper()
	if v, err := s.Read(s.Context()); err != nil || v != trimtab.Units(n) {
		s.Errorf("%s asks for %v, %v; want %v", s.dir, v, err, n)
	}
}

// at is a declared location on this host.
func at(t *testing.T, dir string) actuator.Location {
	t.Helper()
	l, err := process.Kind().Probe(actuator.Location{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openFinder opens an actuator that turns the supervised directories that match.
func openFinder(t *testing.T, dir string) *actuator.Actuator {
	t.Helper()
	home := t.TempDir()
	like := actuator.Target{KnobID: trimtab.KnobID{Workload: "render", Resource: trimtab.Workers}, Min: 1, Max: 8, Mode: trimtab.Act}
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: filepath.Join(home, "journal"), LockDir: filepath.Join(home, "locks"), Reopen: reopen,
		Finders: []actuator.Finder{process.Kind().Finder(at(t, dir), dir, []actuator.Target{like})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(t.Context()) })
	return a
}

// instances lists those in the holding as name=now/baseline; a problem stands behind.
func instances(a *actuator.Actuator) (all []string) {
	for _, k := range a.Holding().Targets {
		all = append(all, fmt.Sprintf("%s=%v/%v%s", k.Instance, k.Now, k.Baseline, k.Problem))
	}
	return all
}

// turn is a plan that sets instances from what they have.
func turn(a *actuator.Actuator, sequence uint64, to map[string]float64) *trimtab.Outcome {
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 40, Lease: 30}
	for _, k := range a.Holding().Targets {
		if v, ok := to[k.Instance]; ok {
			p.Actions = append(p.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(v), Mode: trimtab.Act})
		}
	}
	return a.Handle(context.Background(), p)
}

func written(t *testing.T, o *trimtab.Outcome, n int) {
	t.Helper()
	for _, r := range o.Results {
		if r.Status != trimtab.Written {
			t.Errorf("%+v", r)
		}
	}
	if o.Refused != "" || len(o.Results) != n {
		t.Errorf("%+v, want %d results", o, n)
	}
}

func TestRealServicesComeAreTurnedGoAndAreRestored(t *testing.T) {
	base := t.TempDir()
	dir := func(name string) string { return filepath.Join(base, "run", "render-"+name) }
	a := openFinder(t, dir("*"))
	if got := instances(a); len(got) > 0 {
		t.Errorf("before any was started there are %q", got)
	}
	one, two := serve(t, dir("1")), serve(t, dir("2"))
	serve(t, filepath.Join(base, "run", "other"))
	if err := os.Mkdir(dir("unsupervised"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"1=4/4", "2=4/4"}) {
		t.Fatalf("instances %q", got)
	}
	written(t, turn(a, 1, map[string]float64{"1": 2, "2": 3}), 2)
	one.workers(2)
	two.workers(3)
	// One comes, one is killed: what it left behind is not what it starts with again.
	three := serve(t, dir("3"))
	one.kill()
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"2=3/4", "3=4/4"}) {
		t.Errorf("instances %q", got)
	}
	one.asks(4)
	written(t, turn(a, 2, map[string]float64{"2": 2, "3": 1}), 2)
	three.workers(1)
	one.start()
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"1=4/4", "2=2/4", "3=1/4"}) {
		t.Errorf("instances %q", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*service{one, two, three} {
		s.workers(4)
	}
}

func TestAServiceThatIsRestartedInItsDirectoryKeepsItsBaseline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "render-1")
	s := serve(t, dir)
	a := openFinder(t, filepath.Join(filepath.Dir(dir), "render-*"))
	written(t, turn(a, 1, map[string]float64{"1": 2}), 1)
	s.kill()
	s.start() // before anybody looked
	s.workers(2)
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"1=2/4"}) {
		t.Errorf("instances %q, want the same one", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.workers(4)
}

func TestAServiceWhoseDirectoryIsAnotherIsAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "render-1")
	s := serve(t, dir)
	a := openFinder(t, filepath.Join(filepath.Dir(dir), "render-*"))
	written(t, turn(a, 1, map[string]float64{"1": 2}), 1)
	s.workers(2)
	s.kill()
	// It even has what the first one was given, and is there before anybody looked.
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, process.MaxFile), []byte("2\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.workers(2)
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"1=2/2"}) {
		t.Errorf("instances %q, want another with a baseline of its own", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.asks(2)
}

// supervised makes a directory as a supervisor does that is this process.
func supervised(t *testing.T, dir, state string) {
	t.Helper()
	for _, err := range []error{
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, process.MaxFile), []byte("3\n"), 0o644),
		os.WriteFile(filepath.Join(dir, process.CurrentFile), []byte(state), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// self is what such a supervisor says.
func self() string { return fmt.Sprintf(`{"supervisor":%d,"want":3,"workers":[]}`, os.Getpid()) }

func TestOnlyDirectoriesThatASupervisorServesAreInstances(t *testing.T) {
	base := t.TempDir()
	dir := func(name string) string { return filepath.Join(base, "r-"+name) }
	for name, state := range map[string]string{
		"served": self(), "ended": `{"supervisor":999999999,"want":3}`, "garbage": "{", "nobody": `{"supervisor":0}`,
		// Another process has the number of one that is gone since a boot.
		"reused": fmt.Sprintf(`{"supervisor":%d,"start":1,"want":3}`, os.Getpid()),
		"bare":   self(), "linked": self(), "led": self(), "stolen": self(),
	} {
		supervised(t, dir(name), state)
	}
	secret := filepath.Join(base, "secret")
	for _, err := range []error{
		os.Remove(filepath.Join(dir("bare"), process.MaxFile)),
		os.WriteFile(secret, []byte("3\n"), 0o644),
		// Links that leave the directory, for another file and for that of another one.
		os.Remove(filepath.Join(dir("linked"), process.MaxFile)), os.Symlink("../secret", filepath.Join(dir("linked"), process.MaxFile)),
		os.Remove(filepath.Join(dir("led"), process.MaxFile)), os.Symlink("../r-served/"+process.MaxFile, filepath.Join(dir("led"), process.MaxFile)),
		os.Remove(filepath.Join(dir("stolen"), process.CurrentFile)), os.Symlink("../r-served/"+process.CurrentFile, filepath.Join(dir("stolen"), process.CurrentFile)),
		os.Symlink("r-served", dir("alias")), os.Symlink("/", dir("root")), syscall.Mkfifo(dir("pipe"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := process.Kind().Find(t.Context(), at(t, dir("*")))
	if err != nil || len(all) != 1 || all[0].Name != "served" || all[0].ID == 0 {
		t.Errorf("%+v, %v; want served alone", all, err)
	}
}

// Whoever may write in the directory of one service could point to that of another.
func TestALinkThatTakesThePlaceOfAnInstanceIsNeverWrittenThrough(t *testing.T) {
	base := t.TempDir()
	dir := func(name string) string { return filepath.Join(base, "r-"+name) }
	supervised(t, dir("a"), self())
	supervised(t, dir("b"), self())
	a := openFinder(t, dir("*"))
	file := filepath.Join(dir("a"), process.MaxFile)
	if err := errors.Join(os.Remove(file), os.Symlink("../r-b/"+process.MaxFile, file)); err != nil {
		t.Fatal(err)
	}
	o := turn(a, 1, map[string]float64{"a": 1})
	if len(o.Results) != 1 || o.Results[0].Status == trimtab.Written {
		t.Errorf("%+v", o)
	}
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"b=3/3"}) {
		t.Errorf("instances %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir("b"), process.MaxFile)); err != nil || string(b) != "3\n" {
		t.Errorf("b has %q, %v", b, err)
	}
}

func TestSoManyDirectoriesThatTheyCannotBeTurnedTurnNone(t *testing.T) {
	base := t.TempDir()
	for i := range hostfs.MaxInstances + 1 {
		if err := os.Mkdir(filepath.Join(base, fmt.Sprintf("r-%d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	supervised(t, filepath.Join(base, "r-0"), self())
	_, err := process.Kind().Find(t.Context(), at(t, filepath.Join(base, "r-*")))
	if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "1001 directories match, at most 1000 may") {
		t.Errorf("error %v", err)
	}
}

func TestADirectoryIsPartedBeforeThePartWithTheStar(t *testing.T) {
	for dir, want := range map[string]actuator.Location{
		"/run/shop":            {Root: "/run/shop", Path: "."},
		"/run/shop/render-*":   {Root: "/run/shop", Path: "render-*"},
		"/run/shop/*/workers":  {Root: "/run/shop", Path: "*/workers"},
		"/*":                   {Root: "/", Path: "*"},
		"/srv/a*b/c/d":         {Root: "/srv", Path: "a*b/c/d"},
		"/run/shop/render-*.d": {Root: "/run/shop", Path: "render-*.d"},
	} {
		if got := at(t, dir); got != want {
			t.Errorf("%s: %+v, want %+v", dir, got, want)
		}
	}
}
