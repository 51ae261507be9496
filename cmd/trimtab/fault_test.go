package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/internal/trial"
)

// acting returns the newest plan that asked for something.
func (p *program) acting() (plan trimtab.Plan, err error) {
	p.Helper()
	code, body, err := p.get("/api/v1/plan")
	if err == nil && code != 200 {
		err = fmt.Errorf("%d %s", code, body) // there is none yet: an answer in JSON, too
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &plan)
	}
	return plan, err
}

// plan returns epoch and sequence of the newest plan, whether it asked for
// something or not.
func (p *program) plan() (plan trimtab.Plan, err error) {
	p.Helper()
	code, body, err := p.get("/api/v1/status")
	if err == nil && code != 200 {
		err = fmt.Errorf("%d %s", code, body)
	}
	if err != nil {
		return plan, err
	}
	var status struct{ Plan string }
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		return plan, err
	}
	plan.Epoch, plan.Sequence, err = trimtab.ParsePlanID(status.Plan)
	return plan, err
}

// planned waits for a plan that the console has seen, and returns the newest.
func (p *program) planned() (plan trimtab.Plan) {
	p.Helper()
	p.until("a plan", func() (err error) {
		plan, err = p.plan()
		return err
	})
	return plan
}

// copyDir copies a tree of files.
func copyDir(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// corrupt flips bytes of every file below dir.
func corrupt(t *testing.T, random *rand.Rand, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return err
		}
		for range 1 + len(b)/500 {
			b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
		}
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// R3, R4, in the whole program; the figure is from readiness to an accepted plan
// of a later epoch, with rounds of 1 s.
func TestAWipedRolledBackOrCorruptStoreLetsPlanningGoOnUnderALaterEpoch(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, trial.Some(2, 4))
	harms := map[string]func(t *testing.T, random *rand.Rand, bus, before string){
		"wiped": func(t *testing.T, _ *rand.Rand, bus, _ string) {
			if err := os.RemoveAll(bus); err != nil {
				t.Fatal(err)
			}
		},
		"rolled back": func(t *testing.T, _ *rand.Rand, bus, before string) {
			if err := os.RemoveAll(bus); err != nil {
				t.Fatal(err)
			}
			copyDir(t, bus, before)
		},
		"corrupt": func(t *testing.T, random *rand.Rand, bus, _ string) { corrupt(t, random, bus) },
		"corrupt in what consumers have read": func(t *testing.T, random *rand.Rand, bus, _ string) {
			dirs, err := filepath.Glob(filepath.Join(bus, "jetstream", "*", "streams", "*", "obs", "*"))
			if err != nil || len(dirs) == 0 {
				t.Fatal(dirs, err)
			}
			for _, dir := range dirs {
				corrupt(t, random, dir)
			}
		},
	}
	names, first := slices.Sorted(maps.Keys(harms)), tr.Rand.IntN(len(harms))
	for i := range tr.N {
		name, random := names[(first+i)%len(names)], rand.New(rand.NewPCG(tr.Seed, uint64(i)))
		harm := harms[name]
		t.Run(fmt.Sprint(i, " ", name), func(t *testing.T) {
			t.Parallel()
			p := prepare(t, anyQuotas(t), "")
			bus, before := filepath.Join(p.storage(), "bus"), filepath.Join(p.dir, "before")
			p.start()
			p.serve()
			p.until("both limits moved", p.moved)
			p.stop()
			copyDir(t, before, bus)
			p.start()
			p.until("both limits moved again", p.moved)
			last := p.planned()
			p.kill(true)
			harm(t, random, bus, before)
			p.start()
			began := time.Now()
			p.until("a plan of a later epoch that is accepted", func() error {
				p.limits()
				plan, err := p.plan()
				if err != nil || plan.Epoch <= last.Epoch || p.sum("trimtab_actuator_plans_total", "result", "accepted") == 0 {
					return fmt.Errorf("plan %s after %s: %w", plan.ID(), last.ID(), err)
				}
				return nil
			})
			tr.Took(time.Since(began))
			p.during(time.Second, func() { p.limits() })
			p.stop()
			if err := p.restored(); err != nil {
				t.Errorf("not at the baselines: %v\n%s", err, p.log())
			}
			p.until("the end of every process", p.noneLeft)
		})
	}
}

// journals are the two copies below a storage directory.
func journals(storage string) [2]string {
	return [2]string{filepath.Join(site.JournalDir(storage), "journal.0"), filepath.Join(site.JournalDir(storage), "journal.1")}
}

func TestADamagedJournalRestoresWhatIsReadableAndSaysSo(t *testing.T) {
	t.Parallel()
	random := seed(t)
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	stop := p.serve()
	p.until("both limits moved", p.moved)
	p.kill(true)
	stop() // it reads the limits that are written below
	moved := map[string][]byte{}
	for _, name := range []string{"hungry", "modest"} {
		b, err := os.ReadFile(filepath.Join(p.q.root, name, "cpu.max"))
		if err != nil {
			t.Fatal(err)
		}
		moved[name] = b
	}
	// Killed between the two writes of a record, only one copy has it, and to damage
	// that one is more than the journal bears.
	var copies [2][]byte
	for n, file := range journals(p.storage()) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copies[n] = b
	}
	alike := bytes.Equal(copies[0], copies[1])
	t.Logf("both copies say the same: %v", alike)
	cut, zeros := false, false
	damage := func(b []byte) []byte {
		switch {
		case cut:
			return nil
		case zeros:
			return make([]byte, len(b))
		}
		// Where the records are, at most of the time.
		at := random.IntN(min(len(b), 4<<10))
		if random.IntN(2) == 0 {
			return b[:at]
		}
		for range 1 + random.IntN(40) {
			b[random.IntN(min(len(b), 4<<10))] ^= byte(1 + random.IntN(255))
		}
		return b
	}
	for i := range 40 {
		storage := filepath.Join(p.dir, fmt.Sprint("damaged", i))
		copyDir(t, site.JournalDir(storage), site.JournalDir(p.storage()))
		for name, b := range moved {
			if err := os.WriteFile(filepath.Join(p.q.root, name, "cpu.max"), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		both := i%2 == 0
		cut, zeros = i == 4, i == 6 // everything, between two records so to say
		for n, file := range journals(storage) {
			if n == 1 && !both {
				break
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, out := p.command("restore", "--storage.path", storage)
		unreadable := strings.Contains(out, "the journal is unreadable") && strings.Contains(out, "limits that trimtab set may still be in place")
		if code == exitDone == unreadable || (cut || zeros) && !unreadable {
			t.Errorf("%d: restore of a damaged journal: code %d: %s", i, code, out)
		}
		// Not p.restored: what is lost of a plan may leave the other half of it
		// standing beside a baseline, and the journal alone cannot know.
		if h, m := p.q.read("hungry"), p.q.read("modest"); h != 0.5 || m != 0.5 {
			err := fmt.Errorf("hungry %v, modest %v", h, m)
			if !both && alike {
				t.Errorf("%d: one copy is whole, and yet %v: %s", i, err, out)
			}
			if !unreadable && !strings.Contains(out, "damaged") {
				t.Errorf("%d: not restored, and nothing said: %v: %s", i, err, out)
			}
		}
		if i < 2 { // a program starts on it, too
			p.text = strings.ReplaceAll(p.text, p.storage(), storage)
			p.start()
			p.stop()
			p.text = strings.ReplaceAll(p.text, storage, p.storage())
		}
	}
}

func TestAStartThatCannotWorkSaysWhyAndWhatToDoAndLeavesNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().String()
	running := prepare(t, fixtureQuotas(t), "")
	running.start()
	for name, c := range map[string]struct {
		set  func(p *program)
		says string
	}{
		"web port in use":       {func(p *program) { p.text = strings.ReplaceAll(p.text, p.web, taken) }, "address already in use"},
		"OTLP gRPC port in use": {func(p *program) { p.text = strings.ReplaceAll(p.text, p.otlp, taken) }, "address already in use"},
		"OTLP HTTP port in use": {func(p *program) { p.text = strings.ReplaceAll(p.text, p.http, taken) }, "address already in use"},
		"Jaeger port in use":    {func(p *program) { p.text = strings.ReplaceAll(p.text, p.jaeger, taken) }, "address already in use"},
		"NATS port in use":      {func(p *program) { p.text = strings.ReplaceAll(p.text, p.nats, taken) }, "address already in use"},
		"storage below a file": {func(p *program) {
			if err := os.WriteFile(p.storage(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory"},
		"storage read-only": {func(p *program) {
			mount(p.T, p.storage(), "size=4m,ro")
		}, "read-only file system"},
		"storage full": {func(p *program) {
			mount(p.T, p.storage(), "size=1m")
			fill(p.T, p.storage())
		}, "no space left on device"},
		"storage nearly full": {func(p *program) {
			mount(p.T, p.storage(), "size=1m")
		}, "no space left on device"},
		"storage of another trimtab": {func(p *program) { p.text = strings.ReplaceAll(p.text, p.storage(), running.storage()) }, "another process uses it"},
		"bus out of reach": {func(p *program) {
			p.text = strings.ReplaceAll(p.text, fmt.Sprintf("nats: {listen: %q}", p.nats), fmt.Sprintf("nats: {url: %q}", "nats://"+p.nats))
		}, "nats://"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t, fixtureQuotas(t), "")
			before := p.foreign()
			c.set(p)
			p.run()
			ended := make(chan struct{})
			go func() { defer close(ended); _ = p.cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(2 * time.Minute):
				t.Fatalf("still running: %s", p.log())
			}
			log := p.log()
			if code := p.cmd.ProcessState.ExitCode(); code != exitError {
				t.Errorf("exit code %d", code)
			}
			for _, want := range []string{"trimtab: error: ", "trimtab: hint: ", c.says} {
				if !strings.Contains(log, want) {
					t.Errorf("does not say %q:\n%s", want, log)
				}
			}
			if strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
				t.Errorf("not for people:\n%s", log)
			}
			p.until("the end of every process", p.noneLeft)
			p.sameForeign(before)
			if err := p.restored(); err != nil {
				t.Error(err)
			}
		})
	}
}

// mount mounts a small file system, or skips the test where it may not.
func mount(t *testing.T, at, options string) {
	t.Helper()
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	var flags uintptr
	if rest, ok := strings.CutSuffix(options, ",ro"); ok {
		options, flags = rest, unix.MS_RDONLY
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, options); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes until the file system is full; remove makes room again.
func fill(t *testing.T, dir string) (remove func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	}
}

func TestADiskThatBecomesFullChangesNothingWithoutAJournalAndRestores(t *testing.T) {
	t.Parallel()
	p := prepare(t, anyQuotas(t), "")
	mount(t, p.storage(), "size=16m")
	p.start()
	p.serve()
	p.until("both limits moved", p.moved)
	fill(t, p.storage())
	p.during(3*time.Second, func() { p.limits() })
	if code, body, err := p.get("/-/healthy"); err != nil || code != 200 {
		t.Errorf("on a full disk: %d %s %v\n%s", code, body, err, p.log())
	}
	p.kill(true)
	if code, out := p.command("restore", "--storage.path", p.storage()); code != exitDone {
		t.Errorf("restore on a full disk: code %d: %s", code, out)
	}
	if err := p.restored(); err != nil {
		t.Errorf("not at the baselines: %v\n%s", err, p.log())
	}
}
