package path

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// single returns n traces of one span each, with ids from first.
func single(first, n int) (spans []sp) {
	for i := range n {
		spans = append(spans, sp{trace: uint64(first + i), id: 1, service: "a", start: 0, end: 10})
	}
	return spans
}

func TestAWholeTraceIsFinishedWhenItHasSettled(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	held := func() float64 { return count(p, "trimtab_path_held_spans") }
	p.Step(at(0), frame(t, sp{trace: 1, id: 2, parent: 1, service: "a", start: 0, end: 10}))
	p.Step(at(200*ms), frame(t, sp{trace: 1, id: 1, service: "a", start: 0, end: 10}))
	if p.Step(at(449*ms), nil); held() != 2 {
		t.Error("finished before it settled")
	}
	if p.Step(at(450*ms), nil); held() != 0 || count(p, "trimtab_path_finished_traces_total", "settled") != 1 {
		t.Error("not finished when it settled")
	}
}

func TestAnIncompleteTraceWaitsForItsMissingParentsUntilTheTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		spans []sp
		after time.Duration
		cause string
	}{
		"no root":                {[]sp{{trace: 1, id: 2, parent: 1, service: "a"}}, 2 * time.Second, "timeout"},
		"parent missing":         {[]sp{{trace: 1, id: 1, service: "a"}, {trace: 1, id: 3, parent: 2, service: "a"}}, 2 * time.Second, "timeout"},
		"parent comes after 1 s": {[]sp{{trace: 1, id: 1, service: "a"}, {trace: 1, id: 3, parent: 2, service: "a"}, {trace: 1, id: 2, parent: 1, service: "a"}}, 1250 * ms, "settled"},
		"another parent missing": {[]sp{{trace: 1, id: 1, service: "a"}, {trace: 1, id: 3, parent: 1, service: "a"}, {trace: 1, id: 2, parent: 9, service: "a"}}, 2 * time.Second, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, Config{Discover: true})
			p.Step(at(0), frame(t, c.spans[:min(2, len(c.spans))]...))
			p.Step(at(time.Second), nil)
			if len(c.spans) > 2 {
				p = newPath(t, Config{Discover: true})
				p.Step(at(0), frame(t, c.spans[1]))
				p.Step(at(999*ms), frame(t, c.spans[0]))
				p.Step(at(1000*ms), frame(t, c.spans[2:]...))
			}
			if p.Step(at(c.after-1), nil); count(p, "trimtab_path_held_traces") != 1 {
				t.Error("finished early")
			}
			if p.Step(at(c.after), nil); count(p, "trimtab_path_finished_traces_total", c.cause) != 1 {
				t.Errorf("not finished by %s", c.cause)
			}
			balanced(t, p)
		})
	}
}

func TestATraceThatComesBackFromWaitingDisturbsNoOther(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	p.Step(at(0), frame(t, sp{trace: 1, id: 3, parent: 2, service: "a"}))
	p.Step(at(250*ms), nil)
	p.Step(at(300*ms), frame(t, sp{trace: 2, id: 1, service: "a"}))
	p.Step(at(310*ms), frame(t, sp{trace: 1, id: 4, parent: 2, service: "a"}))
	p.Step(at(550*ms), nil)
	if n := count(p, "trimtab_path_finished_traces_total", "settled"); n != 1 {
		t.Errorf("%v traces settled, want 1", n)
	}
}

func TestOverTheCapTheOldestTracesAreFinishedEarlyAndNothingIsLost(t *testing.T) {
	for name, c := range map[string]Config{
		"spans":  {Discover: true, MaxSpans: 100},
		"traces": {Discover: true, MaxTraces: 100},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, c)
			for i := range 10 {
				p.Step(at(time.Duration(i)), frame(t, single(i*100, 100)...))
				if n := count(p, "trimtab_path_held_spans"); n != 100 {
					t.Fatalf("%v spans held, want 100", n)
				}
			}
			if p.byTrace[[16]byte{14: 800 >> 8, 15: 800 & 255}] != 0 || p.byTrace[[16]byte{14: 900 >> 8, 15: 900 & 255}] == 0 {
				t.Error("not the oldest were finished")
			}
			if n := count(p, "trimtab_path_finished_traces_total", "evicted"); n != 900 {
				t.Errorf("%v evicted, want 900", n)
			}
			if s := run(t, p)["a"]; s.Requests != 1000 {
				t.Errorf("%v requests, want 1000", s.Requests)
			}
		})
	}
}

func TestATraceThatIsTheWholeCapGoesOnAsAnother(t *testing.T) {
	spans, _ := hostile("deep", 1000)
	p := newPath(t, Config{Discover: true, MaxSpans: 64})
	run(t, p, frame(t, spans...))
	if n := count(p, "trimtab_path_analysed_spans_total"); n != 1000 {
		t.Errorf("analysed %v spans, want 1000", n)
	}
}

func TestATraceOverItsLimitDropsWhatIsTooMuchAndCountsIt(t *testing.T) {
	spans, _ := hostile("deep", 1000)
	p := newPath(t, Config{Discover: true, MaxSpansPerTrace: 100})
	got := run(t, p, frame(t, spans...), frame(t, single(5, 3)...))
	if n := count(p, "trimtab_path_dropped_spans_total", "trace_limit"); n != 900 {
		t.Errorf("dropped %v, want 900", n)
	}
	if got["deep"].Spans != 100 || got["a"].Requests != 3 {
		t.Errorf("got %s", text(t, got))
	}
}

func TestDuplicatesDoNotUseUpTheLimitOfATrace(t *testing.T) {
	spans, _ := hostile("deep", 100)
	p := newPath(t, Config{Discover: true, MaxSpansPerTrace: 100})
	run(t, p, frame(t, spans[:60]...), frame(t, spans[:40]...), frame(t, spans[60:]...))
	if d, n := count(p, "trimtab_path_duplicate_spans_total"), count(p, "trimtab_path_analysed_spans_total"); d != 40 || n != 100 {
		t.Errorf("%v duplicates, %v analysed, want 40 and 100", d, n)
	}
}

func TestMemoryComesBackWhenNothingIsHeld(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	for i := range 10 {
		p.Step(at(0), frame(t, single(i*10_000, 10_000)...))
	}
	p.Step(at(time.Hour), nil)
	if len(p.spans.chunks) != 0 || len(p.traces.chunks) != 0 {
		t.Errorf("%d chunks of spans, %d of traces kept", len(p.spans.chunks), len(p.traces.chunks))
	}
	if s := run(t, newPath(t, Config{Discover: true}), frame(t, single(1, 1)...))["a"]; s.Requests != 1 {
		t.Errorf("got %s", text(t, s))
	}
}

func TestNamesAreBoundedWhateverIsSent(t *testing.T) {
	p := newPath(t, Config{Discover: true, MaxWorkloads: 8, MaxComponents: 8})
	for i := range 200 {
		var w codec.FrameWriter
		for k := range 100 {
			w.AddResource([]trimtab.Attr{{Key: "service.name", Value: fmt.Sprintf("s%d", i*100+k)}, {Key: "x", Value: strings.Repeat("x", 1000)}})
		}
		w.Add(&trimtab.Span{TraceID: [16]byte{1, byte(i)}, SpanID: [8]byte{1}, Adjusted: 1, Start: epoch, End: epoch + 1, Resource: uint16(i % 100)})
		p.Step(at(0), w.Frame(0))
	}
	if n := count(p, "trimtab_path_workloads"); n != 8 {
		t.Errorf("%v workloads, want 8", n)
	}
	if len(p.places.cache) > maxCached || p.places.cached > maxCachedBytes {
		t.Errorf("cache of %d resources, %d bytes", len(p.places.cache), p.places.cached)
	}
	if n := count(p, "trimtab_path_refused_names_total", "workload"); n < 19_992 {
		t.Errorf("%v refused, want at least 19992", n)
	}
	run(t, p)
}

func TestNamesThatAreNoLongerSentMakeRoomForNewOnes(t *testing.T) {
	c := Config{Discover: true, MaxWorkloads: 3, MaxComponents: 3, Workloads: []Match{
		{Name: "mine", Attributes: map[string][]string{"service.name": {"mine"}}}}}
	p := newPath(t, c)
	at := func(d time.Duration) time.Time { return at(24*time.Hour + d) }
	see := func(when time.Duration, services ...string) (names []string) {
		var spans []sp
		for i, s := range services {
			end := float64((24*time.Hour + when) / ms)
			spans = append(spans, sp{trace: uint64(when) + uint64(i), id: 1, service: s, start: end - 1, end: end})
		}
		p.Step(at(when), frame(t, spans...))
		for _, v := range p.Step(at(when+10*time.Second), nil) {
			name := v.Key()
			if n := v.(*trimtab.Sketch).Requests; n != 1 {
				name = fmt.Sprintf("%s*%v", name, n)
			}
			names = append(names, name)
		}
		return names
	}
	for _, step := range []struct {
		when     time.Duration
		services []string
		want     string
	}{
		{0, []string{"mine", "a", "b", "c"}, "a b mine"},   // c is one too many
		{9 * time.Minute, []string{"b", "c"}, "b"},         // a is still remembered
		{11 * time.Minute, []string{"c", "d", "b"}, "b c"}, // a is not, c takes its place
		{12 * time.Minute, []string{"a", "c"}, "c"},        // and a comes too late
		{40 * time.Minute, []string{"x", "y", "b"}, "x y"}, // all but mine are gone
		{41 * time.Minute, []string{"mine", "x"}, "mine x"},
		{90 * time.Minute, []string{"e", "mine"}, "e mine"},
		{91 * time.Minute, []string{"f", "e", "g"}, "e f"},
		{300 * time.Minute, []string{"mine", "g"}, "g mine"},
	} {
		if got := strings.Join(see(step.when, step.services...), " "); got != step.want {
			t.Errorf("after %v, %v gave sketches of %s, want %s", step.when, step.services, got, step.want)
		}
	}
	balanced(t, p)
}

func TestComponentsOverTheLimitAreSummedUpAsOther(t *testing.T) {
	c := twoWorkloads()
	c.MaxComponents = 2
	var spans []sp
	for i := range 5 {
		spans = append(spans, sp{trace: uint64(i + 1), id: 1, service: fmt.Sprintf("a%d", i), start: 0, end: 10})
	}
	s := run(t, newPath(t, c), frame(t, spans...))["a"]
	if len(s.Components) != 3 || s.Components[Other] == nil || s.Components[Other].Spans != 3 || s.Requests != 5 {
		t.Errorf("got %s", text(t, s))
	}
}

func TestOpenIntervalsAreBoundedWhateverTimesAreSent(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	for i := range 1000 {
		p.Step(at(time.Hour+time.Duration(i)*ms), frame(t,
			sp{trace: uint64(i), id: 1, service: "a", start: 0, end: float64(i) * 1e5},
			sp{trace: uint64(i), id: 2, service: "a", start: 0, end: -float64(i) * 1e5}))
		if len(p.windows.open) > 5 {
			t.Fatalf("%d intervals open", len(p.windows.open))
		}
	}
	balanced(t, p)
}

func TestATickDoesNotWalkThroughTheHeldTraces(t *testing.T) {
	// 100,000 traces that wait for a parent: a million ticks would take days
	// if each walked through them, and the test's own time limit ends it.
	p := newPath(t, Config{Discover: true, Timeout: time.Hour})
	for i := range 10 {
		spans := single(i*10_000, 10_000)
		for k := range spans {
			spans[k].parent = 9
		}
		p.Step(at(0), frame(t, spans...))
	}
	for i := range 1_000_000 {
		p.Step(at(time.Second+time.Duration(i)), nil)
	}
	if n := count(p, "trimtab_path_held_traces"); n != 100_000 {
		t.Errorf("%v traces held, want 100000", n)
	}
}

func TestTimeThatGoesBackIsTakenForStandingStill(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	p.Step(at(time.Second), frame(t, single(1, 1)...))
	p.Step(at(-time.Hour), frame(t, single(2, 1)...))
	if out := p.Step(at(3*time.Second), nil); len(out) != 1 || out[0].(*trimtab.Sketch).Requests != 2 {
		t.Errorf("got %s", text(t, out))
	}
	balanced(t, p)
}

func TestDefaultsFitWhatWasConfigured(t *testing.T) {
	p := newPath(t, Config{Timeout: 100 * ms, MaxSpans: 10, MaxWorkloads: 5000})
	if c := p.config; c.Settle != 100*ms || c.Grace != 350*ms || c.MaxSpansPerTrace != 10 || c.MaxComponents != 5000 {
		t.Errorf("got %+v", c)
	}
	p = newPath(t, Config{Settle: 5 * time.Second})
	if c := p.config; c.Timeout != 5*time.Second || c.Grace != 5250*ms {
		t.Errorf("got %+v", c)
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	match := Match{Name: "a", Attributes: map[string][]string{"service.name": {"a"}}}
	for name, c := range map[string]Config{
		"interval":            {Every: time.Microsecond},
		"negative interval":   {Every: -1},
		"negative settle":     {Settle: -1},
		"timeout < settle":    {Settle: time.Second, Timeout: ms},
		"endless timeout":     {Timeout: 2 * time.Hour},
		"negative grace":      {Grace: -1},
		"negative skew":       {Skew: -1},
		"spans":               {MaxSpans: -1},
		"traces":              {MaxTraces: -1},
		"spans of a trace":    {MaxSpans: 10, MaxSpansPerTrace: 11},
		"workloads":           {MaxWorkloads: 1, Workloads: []Match{match, {Name: "b", Attributes: match.Attributes}}},
		"components":          {MaxComponents: -1},
		"partition":           {Partition: -1},
		"no name":             {Workloads: []Match{{Attributes: match.Attributes}}},
		"long name":           {Workloads: []Match{{Name: strings.Repeat("x", 254), Attributes: match.Attributes}}},
		"twice":               {Workloads: []Match{match, match}},
		"no attributes":       {Workloads: []Match{{Name: "a"}}},
		"negative threshold":  {Workloads: []Match{{Name: "a", Attributes: match.Attributes, Threshold: -1}}},
		"negative everything": {Every: -1, Settle: -1, MaxSpans: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := New(c); !errors.Is(err, trimtab.ErrInvalid) || p != nil {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

func TestAFrameThatCannotBeReadIsCountedAndOtherValuesAreIgnored(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	p.Step(at(0), &trimtab.SpanFrame{Data: []byte("nonsense")})
	p.Step(at(0), (*trimtab.SpanFrame)(nil))
	p.Step(at(0), &trimtab.Sketch{})
	if n := count(p, "trimtab_path_unreadable_frames_total"); n != 1 {
		t.Errorf("%v unreadable, want 1", n)
	}
}

func TestHoldingSpansCostsLittleAndCarriesNoGarbage(t *testing.T) {
	f := newLoad(t, 16)
	p := newPath(t, Config{Discover: true})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := 0; p.spans.held() < 1<<17; i++ {
		p.Step(at(0), f.frame(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := float64(after.HeapAlloc-before.HeapAlloc) / float64(p.spans.held()); per > 100 {
		t.Errorf("%.0f B per held span, want at most 100", per)
	}
	p.Step(at(time.Second), nil)
	for i := range 64 {
		p.Step(at(time.Second), f.frame(i))
	}
	if n := testing.AllocsPerRun(20, func() { p.Step(at(time.Second), f.frame(3)) }); n > 2 {
		t.Errorf("%v allocations per frame", n)
	}
	runtime.KeepAlive(p)
}

func TestEqualInputsGiveEqualOutputs(t *testing.T) {
	spans, _ := hostile("orphans", 500)
	spans = append(spans, single(7, 100)...)
	c := Config{Discover: true, MaxSpans: 90, MaxTraces: 30}
	if a, b := steps(t, c, spans, 37), steps(t, c, slices.Clone(spans), 37); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}
