package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func report(t *testing.T, text string) Report {
	t.Helper()
	r, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAReportIsOneObjectWithSenseInIt(t *testing.T) {
	for _, bad := range []string{
		``, `{}`, `[]`, `null`, `1`, `{"done": 1.5}`, `{"done": -0.1}`, `{"done": "half"}`, `{"step": -1}`, `{"step": 5, "steps": 4}`,
		`{"step": 1e300}`, `{"done": 0.1} {"done": 0.2}`, `{"dones": 0.1}`, `{"step": 3, "saved": 4}`, `{"done": 0.3, "saved": 0.4}`, `{"saved": -1}`, `{"done": NaN}`, strings.Repeat(" ", MaxReport) + `{"done": 0.1}`,
	} {
		if r, err := Parse([]byte(bad)); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%.40q: %+v, %v", bad, r, err)
		}
	}
	if r := report(t, `{"step": 3, "steps": 10, "checkpoint": true}`); *r.Step != 3 || *r.Steps != 10 || !r.Checkpoint || r.Finished {
		t.Errorf("%+v", r)
	}
}

func TestAnyBytesAreAReportOrAnErrorAndWhatIsReadIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "json") {
			b, _ = json.Marshal(map[string]any{"done": rapid.Float64Range(-2, 2).Draw(t, "done"), "step": rapid.Float64Range(-1, 1e16).Draw(t, "step")})
		}
		r, err := Parse(b)
		if err != nil {
			return
		}
		var p Progress
		for i := range 3 {
			p.Run(time.Second, 1)
			p.Take(noon.Add(time.Duration(i)*time.Second), r)
		}
		if f, ok := p.Fraction(); ok && !(f >= 0 && f <= 1) {
			t.Errorf("fraction %v", f)
		}
		if left, rate, ok := p.Steps(); ok && (!(left >= 0) || math.IsInf(rate, 0)) {
			t.Errorf("steps %v at %v", left, rate)
		}
	})
}

func TestAJobThatGoesBackwardsBeganAgain(t *testing.T) {
	var p Progress
	p.Run(10*time.Second, 2)
	p.Take(noon, report(t, `{"step": 10, "steps": 100}`))
	p.Run(10*time.Second, 2)
	p.Take(noon, report(t, `{"step": 30}`))
	if left, rate, ok := p.Steps(); !ok || left != 70 || rate != 2 {
		t.Errorf("%v steps at %v a second, %t", left, rate, ok)
	}
	p.Take(noon, report(t, `{"step": 5}`))
	if _, _, ok := p.Steps(); ok || p.Backwards != 1 || p.Elapsed != 0 || p.Problem == "" || p.Attained != 40 {
		t.Errorf("%+v", p)
	}
}

func TestACheckpointIsTheEndOfWhatCanBeLostAndTimeSuspendedIsNone(t *testing.T) {
	var p Progress
	p.Run(30*time.Second, 1)
	p.Take(noon, report(t, `{"checkpoint": true}`))
	p.Run(4*time.Second, 1)
	p.Run(0, 1)
	if p.SinceCheckpoint != 4*time.Second || p.Elapsed != 34*time.Second {
		t.Errorf("%+v", p)
	}
	p.Kill(2)
	if p.Lost != 8 || p.SinceCheckpoint != 0 {
		t.Errorf("lost %v", p.Lost)
	}
}

func TestWhatWasSavedIsSeenHoweverSeldomItIsLookedAt(t *testing.T) {
	// Who polls sees a state, and may miss what was true for a moment: here each
	// checkpoint but the last. When one before the first look was made, nobody knows.
	rapid.Check(t, func(t *rapid.T) {
		step, every := time.Duration(rapid.IntRange(10, 2000).Draw(t, "step, ms"))*time.Millisecond, rapid.IntRange(1, 50).Draw(t, "steps between checkpoints")
		unit := rapid.SampledFrom([]string{"step", "done"}).Draw(t, "unit")
		var p Progress
		at, first := 0, -1
		for range rapid.IntRange(2, 10).Draw(t, "polls") {
			n := rapid.IntRange(1, 200).Draw(t, "steps until the poll")
			at += n
			if first < 0 {
				first = at / every
			}
			p.Run(time.Duration(n)*step, 1)
			done, saved := float64(at), float64(at/every*every)
			if unit == "done" {
				done, saved = done/4096, saved/4096 // exact
			}
			r, err := Parse(fmt.Appendf(nil, `{%q: %v, "saved": %v}`, unit, done, saved))
			if err != nil {
				t.Fatal(err)
			}
			p.Take(noon, r)
			if want := time.Duration(at%every) * step; at/every > first && (p.SinceCheckpoint-want).Abs() > time.Millisecond || p.SinceCheckpoint < want-time.Millisecond {
				t.Fatalf("after step %d, a checkpoint every %d: %v since the last, want %v", at, every, p.SinceCheckpoint, want)
			}
		}
	})
}

func TestWhatIsSavedAloneSaysThatACheckpointWasMadeSinceTheLastReport(t *testing.T) {
	var p Progress
	p.Run(30*time.Second, 1)
	p.Take(noon, report(t, `{"saved": 1}`))
	if p.SinceCheckpoint != 30*time.Second {
		t.Errorf("%v: nobody knows when the first was made", p.SinceCheckpoint)
	}
	p.Run(5*time.Second, 1)
	p.Take(noon, report(t, `{"saved": 2}`))
	p.Run(time.Second, 1)
	p.Take(noon, report(t, `{"saved": 2}`))
	if p.SinceCheckpoint != 6*time.Second {
		t.Errorf("%v, want 6s at most", p.SinceCheckpoint)
	}
	p.Take(noon, report(t, `{"saved": 1}`))
	if p.Backwards != 1 {
		t.Error("what was saved is no longer saved, and it did not begin again")
	}
}

func TestOneThatFallsSilentIsNotPredicted(t *testing.T) {
	var p Progress
	if !p.Silent() {
		t.Error("one that never said anything is not silent")
	}
	p.Take(noon, report(t, `{"done": 0.5}`))
	p.Run(silentAfter, 1)
	if f, ok := p.Fraction(); !ok || f != 0.5 {
		t.Errorf("%v %t", f, ok)
	}
	p.Run(time.Second, 1)
	if _, ok := p.Fraction(); ok {
		t.Error("predicted after a minute of silence")
	}
}

func TestAFileTellsByItsOnlyObjectOrItsLastLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p")
	for text, want := range map[string]float64{
		"{\n  \"done\": 0.25\n}\n":                               0.25,
		"{\"done\": 0.1}\n{\"done\": 0.5}\n":                     0.5,
		strings.Repeat("{\"done\": 0.1}\n", 9999) + `{"done":1}`: 1,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := (Source{Name: name}).Read(); err != nil || *r.Done != want {
			t.Errorf("%.30q: %+v, %v", text, r, err)
		}
	}
}

func TestAFileThatIsNoneIsAnErrorAtOnceAndTellsNothing(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("dir"), 0o700), os.WriteFile(in("secret"), []byte("hunter2"), 0o600),
		os.Symlink(in("secret"), in("link")), os.WriteFile(in("empty"), nil, 0o600), os.WriteFile(in("large"), make([]byte, MaxFile+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "dir", "secret", "link", "empty", "large", "missing"} {
		if r, err := (Source{Name: in(name)}).Read(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestWhatIsNoRegularFileIsNotEvenOpened(t *testing.T) {
	// To open a device may do something: /dev/watchdog restarts the machine.
	pipe := filepath.Join(t.TempDir(), "pipe")
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(events)
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(events, pipe, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if _, err := (Source{Name: pipe}).Read(); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
	if n, err := unix.Read(events, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it was opened: %d bytes of events, %v", n, err)
	}
}

func registry(t *testing.T, groups ...string) (*Registry, Config, string) {
	t.Helper()
	c := Config{Root: t.TempDir(), Reserved: []string{"shop.slice/checkout.service", "batch.slice/*.scope"}, Predictions: []string{"training", "none"}}
	for _, g := range groups {
		if err := os.MkdirAll(filepath.Join(c.Root, g), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	r, err := Open(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	return r, c, dir
}

func TestNobodyRegistersTheGroupOfADeclaredWorkload(t *testing.T) {
	r, _, _ := registry(t, "shop.slice/checkout.service/worker", "batch.slice/a.scope", "train/a", "train/a/b")
	for _, s := range []Spec{
		{Name: "a", Cgroup: "shop.slice/checkout.service"}, {Name: "a", Cgroup: "shop.slice"}, {Name: "a", Cgroup: "shop.slice/checkout.service/worker"},
		{Name: "a", Cgroup: "batch.slice/a.scope"}, {Name: "a", Cgroup: "../train/a"}, {Name: "a", Cgroup: "/train/a"}, {Name: "a", Cgroup: "."}, {Name: "a"},
		{Name: "", Cgroup: "train/a"}, {Name: "a/b", Cgroup: "train/a"}, {Name: "a", Cgroup: "train/none"}, {Name: "a", Cgroup: "train/a", Predict: "magic"},
		{Name: "a", Cgroup: "train/a", File: "run/p"},
	} {
		if err := r.Register(s); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := r.Register(Spec{Name: "a", Cgroup: "train/a", Predict: "training"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(Spec{Name: "b", Cgroup: "train/a/b"}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error("a group inside that of another job:", err)
	}
}

func TestNobodyRegistersAGroupThatHoldsTrimtab(t *testing.T) {
	_, c, dir := registry(t, "system.slice/trimtab.service/jobs", "system.slice/other")
	c.Own = []string{"system.slice/trimtab.service"}
	r, err := Open(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"system.slice", "system.slice/trimtab.service"} {
		if err := r.Register(Spec{Name: "a", Cgroup: group}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", group, err)
		}
	}
	for _, group := range []string{"system.slice/trimtab.service/jobs", "system.slice/other"} {
		if err := r.Register(Spec{Name: path.Base(group), Cgroup: group}); err != nil {
			t.Errorf("%s: %v", group, err)
		}
	}
}

func TestNoMoreJobsRegisterThanThereIsRoomFor(t *testing.T) {
	_, c, dir := registry(t, "train/a", "train/b")
	c.Most = 1
	r, err := Open(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Register(Spec{Name: "a", Cgroup: "train/a"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(Spec{Name: "b", Cgroup: "train/b"}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
	if _, ok := r.Find("b"); ok {
		t.Error("it is found")
	}
}

func TestWhatIsRegisteredOutlivesTheProcessAndNotItsGroup(t *testing.T) {
	r, c, dir := registry(t, "train/a", "train/b")
	for _, name := range []string{"a", "b"} {
		if err := r.Register(Spec{Name: name, Cgroup: "train/" + name}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir, c)
	if err != nil || len(r.Registered()) != 2 || len(r.There()) != 2 {
		t.Fatal(err, r.Registered())
	}
	if err := os.Remove(filepath.Join(c.Root, "train/a")); err != nil {
		t.Fatal(err)
	}
	if gone := r.Forget(); len(gone) != 1 || gone[0] != "jobs/a" {
		t.Error(gone)
	}
	if err := r.Remove("jobs/b"); err != nil {
		t.Error(err)
	}
	if err := r.Remove("b"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if r, err = Open(dir, c); err != nil || len(r.Registered()) != 0 {
		t.Error(err, r.Registered())
	}
}

func TestAJobThatFinishedIsNoLongerThere(t *testing.T) {
	r, _, _ := registry(t, "train/a")
	if err := r.Register(Spec{Name: "a", Cgroup: "train/a"}); err != nil {
		t.Fatal(err)
	}
	r.Take("jobs/a", noon, Report{Finished: true})
	if there := r.There(); len(there) != 0 {
		t.Error(there)
	}
}

func TestARegistryThatWasDamagedIsToldAndBegunAnew(t *testing.T) {
	_, c, dir := registry(t)
	if err := os.WriteFile(filepath.Join(dir, "jobs.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(dir, c); err == nil || r == nil || len(r.Registered()) != 0 {
		t.Error(err)
	}
}
