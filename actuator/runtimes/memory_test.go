package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

// imitation is a group in plain files with one program, which is this process: its setting bounds
// what it holds.
type imitation struct {
	t                   *testing.T
	root                string
	limit, held, least  float64
	others              float64
	log                 []string
	broken              error
	hangs, keeps, needs bool
	process             Process
}

const group = "shop/java"

func imitate(t *testing.T) *imitation {
	t.Helper()
	p, err := processOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	i := &imitation{t: t, root: t.TempDir(), held: 400 << 20, least: 100 << 20, others: 50 << 20, process: p}
	if err := os.MkdirAll(filepath.Join(i.root, group), 0o755); err != nil {
		t.Fatal(err)
	}
	i.file("memory.max", "629145600")
	i.file("memory.stat", "anon 1\ninactive_file 0")
	i.file("cgroup.procs", strconv.Itoa(os.Getpid()))
	i.usage()
	return i
}

func (i *imitation) file(name, text string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.root, group, name), []byte(text+"\n"), 0o644); err != nil {
		i.t.Fatal(err)
	}
}

func (i *imitation) usage() {
	i.file("memory.current", strconv.FormatFloat(i.held+i.others, 'f', 0, 64))
}

// max is the limit of the group.
func (i *imitation) max() string {
	b, err := os.ReadFile(filepath.Join(i.root, group, "memory.max"))
	if err != nil {
		i.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (i *imitation) String() string   { return "program of the test" }
func (i *imitation) Process() Process { return i.process }

func (i *imitation) answer(ctx context.Context) error {
	if i.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.Join(i.broken, ctx.Err())
}

func (i *imitation) Read(ctx context.Context) (State, error) {
	return State{fmt.Sprint(i.limit), i.held, i.least}, i.answer(ctx)
}

func (i *imitation) set(what string, limit float64) {
	i.log = append(i.log, fmt.Sprintf("%s at %s", what, i.max()))
	if i.limit = limit; !i.keeps && limit > 0 {
		i.held = max(i.least, min(i.held, limit))
		i.usage()
	}
}

func (i *imitation) Set(ctx context.Context, to Room, _ State) error {
	if err := i.answer(ctx); err != nil {
		return err
	}
	if to.Bytes < i.least {
		return needs(i, i.least, to)
	}
	i.set("set", to.Bytes)
	return nil
}

func (i *imitation) Free(ctx context.Context, to Room) error {
	i.log = append(i.log, "free")
	if i.needs {
		return needs(i, i.held, to)
	}
	return i.answer(ctx)
}

func (i *imitation) Restore(ctx context.Context, setting string) error {
	if err := i.answer(ctx); err != nil {
		return err
	}
	limit, err := strconv.ParseFloat(setting, 64)
	i.set("restore", limit)
	return err
}

// open opens the knob of the group, which the journal has.
func (i *imitation) open() *journaled {
	k := Within(cgroup.Kind())
	knob, err := k.Open(actuator.Location{Root: i.root, Path: group, Runtime: actuator.Runtime{Kind: "test", Wait: 3 * time.Second}}, trimtab.Memory)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.known(knob)
}

func (i *imitation) known(knob actuator.Knob) *journaled {
	m := knob.(*Memory)
	m.find = func(context.Context, *actuator.Runtime, []int) ([]Program, error) { return []Program{i}, nil }
	i.t.Cleanup(func() { _ = m.Close() })
	return &journaled{m}
}

func (i *imitation) reopen(undo []byte) (actuator.Knob, error) {
	knob, err := Within(cgroup.Kind()).Reopen(undo)
	if err != nil {
		return nil, err
	}
	if _, ok := knob.(*Memory); !ok {
		return nil, fmt.Errorf("a knob of another kind: %w", errors.Join(trimtab.ErrUnsupported, knob.Close()))
	}
	return i.known(knob), nil
}

// journaled writes as an actuator does: it reads the floor, then what the journal gets.
type journaled struct{ *Memory }

func (k *journaled) Write(ctx context.Context, a trimtab.Amount) error {
	if _, err := k.Floor(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	k.Undo()
	return k.Memory.Write(ctx, a)
}

func TestALimitWithProgramsMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		i := imitate(t)
		i.least, i.held, i.others = 1<<20, 2<<20, 0
		i.usage()
		k := i.open()
		return knobtest.Fixture{Knob: k, Reopen: i.reopen, Least: 64 << 20, Most: 1 << 30,
			Vanish: func() { _ = os.RemoveAll(filepath.Join(i.root, group)) },
			Use: func(v float64) {
				i.held, i.least, k.again = v, v, time.Time{}
				i.usage()
			}}
	})
}

func (i *imitation) write(k *journaled, mib float64) error {
	return k.Write(i.t.Context(), trimtab.Units(mib*(1<<20)))
}

func (i *imitation) must(k *journaled, mib float64) {
	i.t.Helper()
	if err := i.write(k, mib); err != nil {
		i.t.Fatal(err)
	}
}

func TestAFallTellsTheProgramFirstAndARiseTellsItLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := imitate(t)
		k := i.open()
		i.must(k, 600)
		i.must(k, 300)
		if got, want := strings.Join(i.log, ", "), "set at 629145600"; got != want {
			t.Errorf("a fall: %s, want %s", got, want)
		}
		if i.max() != "314572800" || (i.held+i.others)*9/8 > 300<<20 {
			t.Errorf("the limit is %s, in use are %v", i.max(), i.held+i.others)
		}
		i.must(k, 400)
		i.must(k, 600)
		if got, want := strings.Join(i.log[1:], ", "), "set at 419430400, restore at 629145600"; got != want || i.limit != 0 {
			t.Errorf("a rise: %s, want %s; its limit is %v", got, want, i.limit)
		}
	})
}

// A fall that fails leaves the limit and the program as they were, in bounded time, and says why.
func TestTheLimitIsNotLowered(t *testing.T) {
	stranger := Process{PID: os.Getpid(), Start: 1}
	for name, c := range map[string]struct {
		do   func(i *imitation, k *journaled)
		want string
		kind error
	}{
		"if the memory does not come back":         {func(i *imitation, _ *journaled) { i.keeps = true }, "did not come back within 3s", trimtab.ErrRefused},
		"if the program hangs":                     {func(i *imitation, _ *journaled) { i.hangs = true }, "deadline exceeded", context.DeadlineExceeded},
		"if the program answers nonsense":          {func(i *imitation, _ *journaled) { i.broken = trimtab.Invalidf("nonsense") }, "nonsense", trimtab.ErrInvalid},
		"if the program needs more":                {func(i *imitation, _ *journaled) { i.keeps, i.needs = true, true }, "program of the test needs", trimtab.ErrRefused},
		"below what the program cannot give back":  {func(i *imitation, _ *journaled) { i.least = 390 << 20 }, "programs can give back 10MiB", trimtab.ErrRefused},
		"if another process has its PID":           {func(i *imitation, _ *journaled) { i.process, i.broken = stranger, errors.New("ended") }, "no process of the group", trimtab.ErrRefused},
		"if the journal does not have the program": {func(i *imitation, k *journaled) { i.limit = 7e8 }, "since the journal was written", trimtab.ErrStale},
		"if another program set it since":          {func(i *imitation, k *journaled) { k.parts[0].set, k.parts[0].last, i.limit = true, "5", 6 }, "another program set", trimtab.ErrRefused},
		"if the files of the group cannot be read": {func(i *imitation, _ *journaled) { _ = os.Remove(filepath.Join(i.root, group, "memory.current")) }, "no such file", os.ErrNotExist},
		"if the processes are not known":           {func(i *imitation, _ *journaled) { i.file("cgroup.procs", "0") }, "cannot be named", trimtab.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := imitate(t)
				k := i.open()
				i.must(k, 600)
				if _, err := k.Floor(t.Context()); err != nil {
					t.Fatal(err)
				}
				k.Undo()
				c.do(i, k)
				limit, begun := i.limit, time.Now()
				err := k.Memory.Write(t.Context(), trimtab.Units(300<<20))
				if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if i.max() != "629145600" || i.limit != limit {
					t.Errorf("the limit is %s, and that of the program %v, was %v", i.max(), i.limit, limit)
				}
				if took := time.Since(begun); took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestAfterAFailedFallNothingBelowWhatIsInUseIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := imitate(t)
		k := i.open()
		i.must(k, 600)
		floor := func() float64 {
			v, err := k.Floor(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v.Value / (1 << 20)
		}
		if v := floor(); v > 170 {
			t.Errorf("offered down to %v MiB", v)
		}
		i.keeps = true
		if err := i.write(k, 300); err == nil {
			t.Fatal("it was lowered")
		}
		if v := floor(); v < 506 {
			t.Errorf("after a failed fall offered down to %v MiB", v)
		}
		time.Sleep(restAfter)
		if v := floor(); v > 170 {
			t.Errorf("a minute later offered down to %v MiB", v)
		}
	})
}

func TestARestoreAfterAKillPutsTheProgramBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := imitate(t)
		i.limit = 5e8
		k := i.open()
		i.must(k, 600)
		if _, err := k.Floor(t.Context()); err != nil {
			t.Fatal(err)
		}
		undo := k.Undo()
		if err := k.Memory.Write(t.Context(), trimtab.Units(300<<20)); err != nil {
			t.Fatal(err)
		}
		if i.limit >= 5e8 {
			t.Fatalf("it has %v", i.limit)
		}
		again, err := i.reopen(undo) // another process, which has the journal alone
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Write(t.Context(), trimtab.Units(600<<20)); err != nil {
			t.Fatal(err)
		}
		if err := again.Traits().Settle(); err != nil || i.limit != 5e8 {
			t.Errorf("%v; it has %v, had 5e8", err, i.limit)
		}
		n := len(i.log)
		if err := again.Traits().Settle(); err != nil || len(i.log) != n {
			t.Errorf("a second time: %v, %v", err, i.log[n:])
		}
		if err := i.write(&journaled{again.(*journaled).Memory}, 300); err != nil {
			t.Errorf("a fall after the restore: %v", err)
		}
	})
}

func TestAProgramKeepsWhatItWasToldUntilTheRestore(t *testing.T) {
	i := imitate(t)
	i.limit = 5e8
	id := trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: trimtab.Memory}
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: i.reopen,
		Targets: []actuator.Target{{KnobID: id, Knob: i.open().Memory, Min: 1 << 20, Max: 1 << 40, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 60, Capacities: map[string]float64{trimtab.Memory: 1 << 40},
		Actions: []trimtab.Action{{KnobID: id, Expect: a.Holding().Targets[0].Now, Set: trimtab.Units(300 << 20), Mode: trimtab.Act}}})
	if o.Refused != "" || o.Results[0].Status != trimtab.Written || i.limit >= 3e8 {
		t.Errorf("after the plan it has %v: %+v", i.limit, o)
	}
	if err := a.Close(t.Context()); err != nil || i.limit != 5e8 {
		t.Errorf("after the restore it has %v: %v", i.limit, err)
	}
}

func TestARestoreLeavesAnEndedProgramAloneAndSaysWhatItCannotReach(t *testing.T) {
	i := imitate(t)
	k := i.open()
	i.must(k, 600)
	i.must(k, 300)
	i.broken = errors.New("no answer")
	if err := k.settle(); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("%v", err)
	}
	k.parts[0].Process.Start++
	if err := k.settle(); err != nil {
		t.Errorf("a program that ended: %v", err)
	}
}

func TestARiseIsMadeWhetherOrNotTheProgramAnswers(t *testing.T) {
	i := imitate(t)
	k := i.open()
	i.must(k, 600)
	i.must(k, 300)
	i.broken = errors.New("no answer")
	if err := i.write(k, 500); err == nil || !strings.Contains(err.Error(), "rose, and its programs") || i.max() != "524288000" {
		t.Errorf("%v, the limit is %s", err, i.max())
	}
}

func TestALimitAloneDoesNotTakeOverOneWithPrograms(t *testing.T) {
	i := imitate(t)
	with := i.open()
	plain, err := Within(cgroup.Kind()).Open(actuator.Location{Root: i.root, Path: group}, trimtab.Memory)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if plain.Traits().TakesOver(with.Undo()) || !plain.Traits().TakesOver(plain.Undo()) || !with.Traits().TakesOver(plain.Undo()) || !with.Traits().TakesOver(with.Undo()) {
		t.Error("the settings of programs would be lost, or a limit not be taken over")
	}
}

func TestFallsOfAHostWaitABoundedTimeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn turn
		total := time.Duration(0)
		for range 20 {
			wait, done := turn.take(3 * time.Second)
			time.Sleep(wait)
			done()
			total += wait
		}
		if total > mostWait+3*time.Second+20*leastWait {
			t.Errorf("20 falls waited %v", total)
		}
		time.Sleep(window)
		if wait, done := turn.take(3 * time.Second); wait != 3*time.Second {
			t.Errorf("a minute later a fall waits %v", wait)
			done()
		}
	})
}
