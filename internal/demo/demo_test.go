package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
	"github.com/trimtab/trimtab/internal/proctest"
)

// idle is a pipeline that changes nothing.
type idle struct {
	modes  []trimtab.Mode
	closed bool
}

func (p *idle) SetMode(_ context.Context, m trimtab.Mode) error {
	p.modes = append(p.modes, m)
	return nil
}
func (p *idle) Rounds() int  { return 7 }
func (p *idle) Page() string { return "" }
func (p *idle) Close() error { p.closed = true; return nil }

// mark is a command line by which this test's services can be told.
func mark(t *testing.T) ([]string, string) {
	t.Helper()
	word := fmt.Sprintf("--mark-%d-%s", os.Getpid(), t.Name())
	return append(self(t), word), word
}

func TestTheDemoReportsBothPhasesAndLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	command, word := mark(t)
	file := filepath.Join(t.TempDir(), "out.json")
	var spans *sink
	var setup *Setup
	pipeline := &idle{}
	report, err := Run(t.Context(), Config{For: 6 * time.Second, Knob: KnobProcess, Self: command, Seed: 11, Report: file, Stderr: os.Stderr,
		Start: func(_ context.Context, s *Setup) (Pipeline, error) {
			setup = s
			spans, _ = openSink(t, s.OTLP)
			if n := len(proctest.With(word)); n < 3*int(s.Services[0].Equal) {
				t.Errorf("%d service processes run", n)
			}
			return pipeline, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if left := proctest.With(word); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	if !pipeline.closed || !slices.Equal(pipeline.modes, []trimtab.Mode{trimtab.Act}) {
		t.Errorf("pipeline %+v", pipeline)
	}
	checkReport(t, file, setup)
	spans.read(func() { checkSpans(t, spans, setup, report) })
}

// gone is a reader that goes away after the first line.
type gone struct{ lines int }

// Write fails from the second line on.
func (g *gone) Write(b []byte) (int, error) {
	if g.lines++; g.lines > 1 {
		return 0, syscall.EPIPE
	}
	return len(b), nil
}

func TestADemoWhoseOutputIsClosedEndsAndLeavesNothingBehind(t *testing.T) {
	command, word := mark(t)
	pipeline := &idle{}
	begun := time.Now()
	_, err := Run(t.Context(), Config{For: time.Hour, Knob: KnobProcess, Self: command, Seed: 11, Screen: &Screen{Out: &gone{}}, Stderr: os.Stderr,
		Start: func(context.Context, *Setup) (Pipeline, error) { return pipeline, nil }})
	if !errors.Is(err, ErrOutput) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	if left := proctest.With(word); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// checkReport reads the file as somebody would who only knows the format.
func checkReport(t *testing.T, file string, setup *Setup) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Knob            string
		Capacity        float64
		Seed            float64
		Rounds          float64
		Restored        bool
		MaxAllocatedSum float64 `json:"max_allocated_sum"`
		Phases          []struct {
			Phase      string
			MinUtility float64 `json:"min_utility"`
			Social     float64
			Services   []map[string]any
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if r.Knob != KnobProcess || r.Capacity != setup.Capacity || r.Seed != 11 || r.Rounds != 7 || !r.Restored || r.MaxAllocatedSum != setup.Capacity {
		t.Errorf("report %s", b)
	}
	if len(r.Phases) != 2 || r.Phases[0].Phase != "equal" || r.Phases[1].Phase != "learned" {
		t.Fatalf("phases of %s", b)
	}
	for _, p := range r.Phases {
		least, sum := 1.0, 0.0
		for _, s := range p.Services {
			for _, key := range []string{"utility", "slo_attained", "p50_ms", "p95_ms", "p99_ms", "allocation"} {
				if v, ok := s[key].(float64); !ok || v < 0 {
					t.Errorf("%s of %v is %v", key, s["name"], s[key])
				}
			}
			u := s["utility"].(float64)
			least, sum = min(least, u), sum+u
		}
		if len(p.Services) != 3 || p.MinUtility != least || math.Abs(p.Social-sum/3) > 1e-9 {
			t.Errorf("phase %+v", p)
		}
	}
}

// checkSpans compares what spans say with what clients saw.
func checkSpans(t *testing.T, spans *sink, setup *Setup, report *Report) {
	t.Helper()
	for i, s := range setup.Services {
		e := spans.entries[s.Name]
		if e == nil {
			t.Fatalf("no entry spans of %s", s.Name)
		}
		var ok, failed, all float64
		for _, p := range report.Phases {
			all += float64(p.Services[i].Requests)
			failed += float64(p.Services[i].Failed)
			ok += p.Services[i].SLOAttained * float64(p.Services[i].Requests)
		}
		// On a busy machine clients give up before a service has read what they
		// ask, and there is no span of that; a process that does not end in time
		// keeps its last batch; and a client hears later than the service answered.
		// What it heard in time, was in time.
		inTime := e.within(s.SLO.Latency) * e.latency.Count()
		lost := max(0, all-failed-e.latency.Count())
		if lost > 0.5*(all-failed) || ok > inTime+lost+0.15*all {
			t.Errorf("%s: %v entry spans of %v requests, %v of them without an answer, %.0f within SLO by spans, %.0f by clients",
				s.Name, e.latency.Count(), all, failed, inTime, ok)
		}
	}
	if spans.services["shop-stock"] == 0 || spans.services["shop-front"] <= spans.services["shop-stock"] {
		t.Errorf("spans by component: %v", spans.services)
	}
}

func TestCancellingEndsTheDemoAndKeepsWhatWasPlayed(t *testing.T) {
	command, word := mark(t)
	ctx, cancel := context.WithCancel(t.Context())
	pipeline := &idle{}
	lines := &watcher{seen: func() { cancel() }}
	report, err := Run(ctx, Config{For: time.Hour, Knob: KnobProcess, Self: command, Seed: 1, Screen: &Screen{Out: lines, Live: true},
		Start: func(context.Context, *Setup) (Pipeline, error) { return pipeline, nil }})
	if !errors.Is(err, context.Canceled) || !report.Interrupted || !report.Restored || len(report.Phases) != 1 || !pipeline.closed {
		t.Errorf("error %v, report %+v", err, report)
	}
	if left := proctest.With(word); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// watcher calls seen once the live table is drawn.
type watcher struct{ seen func() }

func (w *watcher) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "1/2 equal") {
		w.seen()
	}
	return len(b), nil
}

func TestAServiceThatDiesFailsTheDemo(t *testing.T) {
	command, word := mark(t)
	_, err := Run(t.Context(), Config{For: time.Hour, Knob: KnobProcess, Self: command, Seed: 1,
		Start: func(_ context.Context, s *Setup) (Pipeline, error) {
			for _, pid := range proctest.With(word, "shop-stock") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			return &idle{}, nil
		}})
	if !errors.Is(err, errEnded) {
		t.Errorf("error %v", err)
	}
	if left := proctest.With(word); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// beParent starts a service and waits to be killed.
func beParent() int {
	exe, err := os.Executable()
	if err != nil {
		return 1
	}
	l := &Launcher{Self: []string{exe, "demo-service", os.Args[2]}}
	pid, err := l.Start([]string{"--name=a", "--workload=a", "--listen=127.0.0.1:0"}, 1)
	if err != nil {
		return 1
	}
	fmt.Println(pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestServicesDieWhenTheDemoIsKilled(t *testing.T) {
	exe := self(t)[0]
	_, word := mark(t)
	cmd := exec.Command(exe, "demo-parent", word)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	err = await(t.Context(), "the end of the service", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEqualSharesAreTooSmallAtAPeakAndThePoolIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Machine{CPUs: 2, Free: rapid.Float64Range(0.4, 8).Draw(t, "free"), Speed: rapid.Float64Range(100, 3000).Draw(t, "speed")}
		knob := rapid.SampledFrom([]string{KnobCgroup, KnobProcess}).Draw(t, "knob")
		s, err := NewSetup(m, knob, 1)
		if err != nil {
			t.Fatal(err)
		}
		equal, missed := 0.0, 0
		for i, svc := range s.Services {
			equal += svc.Equal
			peak := kinds(knob)[i].peak * s.Capacity // in units of the resource
			if peak > 1.1*svc.Equal {
				missed++
			}
			if svc.Max < 1.3*peak || svc.Min > svc.Equal/2 {
				t.Errorf("%s: %v to %v, equal %v, peak %v", svc.Name, svc.Min, svc.Max, svc.Equal, peak)
			}
		}
		if equal > s.Capacity+1e-9 || missed == 0 {
			t.Errorf("equal shares add up to %v of %v and miss %d", equal, s.Capacity, missed)
		}
		for x := 0.0; x < 1; x += 0.01 {
			sum := 0.0
			for i, svc := range s.Services {
				sum += svc.Day.Rate(x) / svc.Day.Peak * kinds(knob)[i].peak
			}
			if sum > 0.75 {
				t.Errorf("at %.2f of the day the load is %.2f of the pool", x, sum)
			}
		}
	})
}

func TestUtilityIsTheMeanOverWindowsOfTheAttainedShareOfTheSLO(t *testing.T) {
	svc := &Service{Name: "a", SLO: SLO{Latency: time.Second, Fraction: 0.8}}
	s := &score{services: []*Service{svc}}
	s.add(5*time.Second, []loadgen.Result{{Requests: 10, OK: 0}})
	s.add(10*time.Second, []loadgen.Result{{Requests: 10, OK: 8}})  // 8/20 of 0.8: 0.5
	s.add(20*time.Second, []loadgen.Result{{Requests: 10, OK: 10}}) // 1
	s.add(30*time.Second, []loadgen.Result{{}})                     // nobody asked: not counted
	s.add(33*time.Second, []loadgen.Result{{Requests: 4, OK: 0}})   // a part: 0
	p := s.phase("equal", []loadgen.Result{{Requests: 34, OK: 18}}, []float64{1})
	if got, want := p.Services[0].Utility, 0.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("utility %v, want %v", got, want)
	}
	if got := p.Services[0].SLOAttained; got != 18.0/34 {
		t.Errorf("attained %v", got)
	}
}

// moving is a place where a core moves from a to b between two reads.
type moving struct {
	turned
	reads int
}

func (*moving) Knob() string                        { return "" }
func (*moving) Root() string                        { return "" }
func (*moving) Add(context.Context, *Service) error { return nil }
func (*moving) Close() error                        { return nil }

func (m *moving) Has(_ context.Context, s *Service) (float64, error) {
	m.reads++
	moved := m.reads > 1 // after a was read for the first time
	if (s.Name == "a") == moved {
		return 1, nil
	}
	return 2, nil
}

func TestASumThatNeverWasIsNotObserved(t *testing.T) {
	w := &watch{place: &moving{}, services: []*Service{{Name: "a"}, {Name: "b"}}}
	if err := w.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.highestSum(); got != 3 {
		t.Errorf("highest sum %v; it was 3 all the time", got)
	}
}

func TestTheTableFitsATerminalAndColoursOnlyWhenAsked(t *testing.T) {
	s, err := NewSetup(Machine{CPUs: 2, Free: 2, Speed: 500}, KnobCgroup, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &frame{phase: Kernel, number: 1, of: 3, at: 90 * time.Second, day: 2 * time.Minute, setup: s,
		results: make([]loadgen.Result, 3), allocations: []float64{0.123, 0.96, 0.117}}
	f.results[0] = loadgen.Result{Requests: 12345, OK: 5, Over: time.Second}
	f.results[0].Latency.Add(2.02, 1)
	for _, row := range (&Screen{}).table(f) {
		if n := len([]rune(row)); n > 79 || strings.Contains(row, "\x1b") {
			t.Errorf("%d columns: %q", n, row)
		}
	}
	var out strings.Builder
	logged := &Screen{Out: &out}
	logged.draw(f)
	logged.summary(&Report{Phases: []Phase{{Name: "equal", Services: []ServiceResult{{Name: "a"}}}}})
	if out.Len() == 0 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("a log got %q", out.String())
	}
	if rows := (&Screen{Color: true}).table(f); !strings.Contains(strings.Join(rows, ""), "\x1b[") {
		t.Error("no colours")
	}
}
