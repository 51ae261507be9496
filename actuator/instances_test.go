package actuator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestInstancesComeAndGoWhileTheActuatorRuns(t *testing.T) {
	h, n := newNursery(t)
	h.open()
	if got := names(h); len(got) > 0 {
		t.Errorf("before any came there are %v", got)
	}
	n.bear(t, "b", units(2))
	n.bear(t, "a", trimtab.Unlimited())
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("instances %q, want a and b", got)
	}
	is(t, h.statuses(h.plan(1, 1, turn("a", trimtab.Unlimited(), units(3)), turn("b", units(2), units(1)))), trimtab.Written, trimtab.Written)
	if k := h.Holding().Targets[0]; k.Baseline != trimtab.Unlimited() || k.Now != units(3) || k.Workload != "w" || k.Pool != "p" || k.Host != "h" {
		t.Errorf("a is %+v", k)
	}
	n.remove(t, "a")
	// Between two heartbeats it still is known, and cannot be turned.
	is(t, h.statuses(h.plan(1, 2, turn("a", units(3), units(2)))), trimtab.Refused)
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"b"}) || n.open != 1 {
		t.Errorf("instances %q with %d open knobs, want b alone", got, n.open)
	}
	if got := journaled(t, h); len(got) != 1 || !strings.Contains(got[0], "b") {
		t.Errorf("the journal has %q, want b alone", got)
	}
	if locks, _ := filepath.Glob(filepath.Join(h.config.LockDir, "*.lock")); len(locks) != 1 {
		t.Errorf("locks %q, want that of b alone", locks)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.holds(t, "b"); got != units(2) || n.open != 0 {
		t.Errorf("at the end b has %v, want 2; %d knobs are open", got, n.open)
	}
}

func TestTheBaselineOfAnInstanceIsDurableBeforeItsFirstWrite(t *testing.T) {
	h, n := newNursery(t)
	h.open()
	n.bear(t, "a", units(2))
	h.Tick(t.Context())
	is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Written)
	state, _, err := hostfs.ReadJournal(h.config.Dir)
	if entry := string(state["knob/cpu/w\x00a"]); err != nil || !strings.Contains(entry, `"baseline":2`) || !strings.Contains(entry, `"instance_id":`) {
		t.Errorf("the journal has %q, %v", entry, err)
	}
}

func TestAnInstanceThatComesAgainUnderItsNameIsAnother(t *testing.T) {
	for name, away := range map[string]func(h *host){
		"between two looks":                func(*host) {},
		"while the actuator was dead":      func(h *host) { h.crash().open() },
		"while a look was made in between": nil,
	} {
		h, n := newNursery(t)
		n.bear(t, "a", units(2))
		h.open()
		is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Written)
		if away == nil {
			n.remove(t, "a")
			h.Tick(t.Context())
		}
		// It even has what the first one was given.
		n.bear(t, "a", units(1))
		if away != nil {
			away(h)
		}
		h.Tick(t.Context())
		if k := h.Holding().Targets; len(k) != 1 || k[0].Baseline != units(1) || k[0].Problem != "" {
			t.Errorf("%s: %+v, want one with the baseline 1 and no problem", name, k)
		}
		if got := journaled(t, h); len(got) > 0 {
			t.Errorf("%s: the journal still has %q", name, got)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := n.holds(t, "a"); got != units(1) {
			t.Errorf("%s: at the end it has %v, the baseline of the first one", name, got)
		}
	}
}

// A service that stops leaves the file with its number behind, and would start
// again with it.
func TestAnInstanceThatGoesAndLeavesItsKnobBehindGetsItsBaselineBack(t *testing.T) {
	for name, c := range map[string]struct{ away, back func(h *host) }{
		"while the actuator ran":      {func(h *host) { h.Tick(t.Context()) }, func(h *host) { h.Tick(t.Context()) }},
		"while the actuator was dead": {func(h *host) { h.crash().open() }, func(h *host) { h.crash().open() }},
	} {
		h, n := newNursery(t)
		n.bear(t, "a", units(2))
		n.bear(t, "b", units(2))
		n.bear(t, "c", units(2))
		h.open()
		is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)), turn("b", units(2), units(1)), turn("c", units(2), units(1)))),
			trimtab.Written, trimtab.Written, trimtab.Written)
		// Of one that somebody else has turned since, nothing is known.
		if err := os.WriteFile(n.path("b"), []byte(format(units(5))), 0o644); err != nil {
			t.Fatal(err)
		}
		n.stopped["a"], n.stopped["b"] = true, true
		c.away(h)
		if a, b, other := n.holds(t, "a"), n.holds(t, "b"), n.holds(t, "c"); a != units(2) || b != units(5) || other != units(1) {
			t.Errorf("%s: a has %v, b %v and c %v, want 2, 5 and 1", name, a, b, other)
		}
		if got := journaled(t, h); len(got) != 1 {
			t.Errorf("%s: the journal has %q, want c alone", name, got)
		}
		n.stopped = map[string]bool{}
		c.back(h)
		if k := h.Holding().Targets[0]; k.Instance != "a" || k.Baseline != units(2) || k.Problem != "" {
			t.Errorf("%s: %+v, want a with its baseline 2", name, k)
		}
	}
}

func TestABaselineThatCouldNotBePutBackIsStillThatOfTheInstanceWhenItComesAgain(t *testing.T) {
	h, n := newNursery(t)
	n.bear(t, "a", units(2))
	h.open()
	is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Written)
	n.stopped["a"], n.stuck = true, syscall.EIO
	h.Tick(t.Context())
	if got := journaled(t, h); len(got) != 1 || len(names(h)) > 0 || n.open > 0 {
		t.Errorf("the journal has %q, there are %q, %d open: want the baseline alone", got, names(h), n.open)
	}
	n.stopped, n.stuck = map[string]bool{}, nil
	h.Tick(t.Context())
	if k := h.Holding().Targets[0]; k.Baseline != units(2) || k.Now != units(1) || k.Problem != "" {
		t.Errorf("%+v, want the baseline 2", k)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.holds(t, "a"); got != units(2) {
		t.Errorf("at the end it has %v", got)
	}
}

func TestAnUnknownInstanceIsRefusedByItself(t *testing.T) {
	h, n := newNursery(t)
	n.bear(t, "a", units(2))
	h.open()
	o := h.Handle(t.Context(), h.plan(1, 1, turn("a", units(2), units(1)), turn("b", units(2), units(1)), turn("", units(2), units(1))))
	var got []trimtab.Status
	for _, r := range o.Results {
		got = append(got, r.Status)
	}
	is(t, got, trimtab.Written, trimtab.Refused, trimtab.Refused)
	if why := o.Results[1].Reason; !strings.Contains(why, "no such knob") {
		t.Errorf("reason %q", why)
	}
}

func TestWhileNobodyCanLookNoInstanceComesOrGoes(t *testing.T) {
	h, n := newNursery(t)
	n.bear(t, "a", units(2))
	n.bear(t, "b", units(2))
	h.open()
	is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Written)
	n.broken = errors.New("input/output error")
	n.bear(t, "c", units(2))
	n.remove(t, "b")
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("instances %q, want a and b as before, and none with the problem", got)
	}
	if got := h.problem(2); !strings.Contains(got, "no such file") {
		t.Errorf("the problem of the one that is gone is %q", got)
	}
	n.broken = nil
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("afterwards there are %q, want a and c", got)
	}
}

func TestTheHoldingSaysWhatKeepsInstancesFromBeingTakenUp(t *testing.T) {
	h, n := newNursery(t)
	h.open()
	n.broken = fmt.Errorf("1200 directories match, at most 1000 may: %w", trimtab.ErrRefused)
	n.bear(t, "a", units(2))
	h.Tick(t.Context())
	in := h.Holding()
	want := trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Knob: "w*", Min: 0.1, Max: 8, Problem: n.broken.Error()}
	if len(in.Targets) != 1 || in.Targets[0] != want {
		t.Errorf("the holding lists %+v, want %+v", in.Targets, want)
	}
	if err := in.Validate(); err != nil {
		t.Error(err)
	}
	is(t, h.statuses(h.plan(1, 1, turn("", units(0), units(1)))), trimtab.Refused)
	n.broken = nil
	h.pass(time.Minute)
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"a"}) {
		t.Errorf("once they are found the holding lists %q, want a alone", got)
	}
}

func TestAnInstanceThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	h, n := newNursery(t)
	f := n.finder()
	opens := errors.New("too many open files")
	open := f.Open
	f.Open = func(name string) ([]actuator.Target, error) {
		if opens != nil {
			return nil, opens
		}
		return open(name)
	}
	h.config.Finders = []actuator.Finder{f}
	n.bear(t, "a", units(2))
	h.open()
	if got := names(h); !slices.Equal(got, []string{""}) {
		t.Errorf("instances %q, want none with the problem", got)
	}
	opens = nil
	h.Tick(t.Context())
	if got := names(h); !slices.Equal(got, []string{"a"}) {
		t.Errorf("instances %q, want a", got)
	}
}

func TestInstancesOfAReleasedWorkloadAreLeftAloneUntilResume(t *testing.T) {
	h, n := newNursery(t)
	h.open()
	command := func(v trimtab.Verb) {
		h.pass(time.Second)
		if err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: v, Workload: "w", By: "test", Time: h.wall}); err != nil {
			t.Fatal(err)
		}
	}
	command(trimtab.Release) // none is there
	h.crash().open()
	n.bear(t, "a", units(2))
	h.Tick(t.Context())
	if got := h.problem(0); !strings.Contains(got, "released") {
		t.Errorf("problem %q", got)
	}
	command(trimtab.Resume)
	n.bear(t, "b", units(2))
	h.Tick(t.Context())
	if got := h.problem(0) + h.problem(1); got != "" {
		t.Errorf("after resume: %q", got)
	}
	h.crash().open()
	if got := h.problem(0) + h.problem(1); got != "" {
		t.Errorf("after resume and a crash: %q", got)
	}
}

func TestTwoActuatorsDoNotTurnOneInstance(t *testing.T) {
	h, n := newNursery(t)
	n.bear(t, "a", units(2))
	h.open()
	other := newHost(t)
	other.config.LockDir = h.config.LockDir
	other.config.Finders = []actuator.Finder{n.finder()}
	other.open()
	if got := other.problem(0); !strings.Contains(got, "owned by process") {
		t.Errorf("problem of the second: %q", got)
	}
	is(t, other.statuses(other.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Refused)
	is(t, h.statuses(h.plan(1, 1, turn("a", units(2), units(1)))), trimtab.Written)
	// The first one dies: the second has its baseline, as of a declared knob.
	h.crash()
	other.Tick(t.Context())
	if k := other.Holding().Targets[0]; k.Problem != "" || k.Baseline != units(2) {
		t.Errorf("after the death of the first: %+v", k)
	}
}

func TestMoreKnobsThanAHoldingHasRoomForAreNotTakenUp(t *testing.T) {
	h := newHost(t)
	n := actuator.MaxKnobs + 7
	find := func(context.Context) (all []actuator.Instance, err error) {
		for i := range n {
			all = append(all, actuator.Instance{Name: strconv.Itoa(i), ID: uint64(i) + 1})
		}
		return all, nil
	}
	opened, closed := 0, 0
	open := func(name string) ([]actuator.Target, error) {
		opened++
		return []actuator.Target{{KnobID: trimtab.KnobID{Resource: "cpu"}, Knob: &countedKnob{&memoryKnob{Name: name, now: units(1)}, &closed}, Min: 0.1, Max: 8, Mode: trimtab.Recommend}}, nil
	}
	h.config.Finders = []actuator.Finder{{Workload: "w", Find: find, Open: open}}
	h.open()
	if got := len(h.Holding().Targets); got != actuator.MaxKnobs || opened-closed != got {
		t.Errorf("%d knobs, %d open; want %d", got, opened-closed, actuator.MaxKnobs)
	}
	if err := h.Holding().Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatAClusterHasOfKnobsIsOneMessageHoweverMuchIsToBeSaidOfEach(t *testing.T) {
	h := newHost(t)
	words := strings.Repeat("a reason that is told of each of them, ", 6)
	find := func(context.Context) (all []actuator.Instance, err error) {
		for i := range 9000 {
			all = append(all, actuator.Instance{Name: fmt.Sprintf("checkout-6d4cf56db6-%05d", i), ID: uint64(i) + 1})
		}
		return all, nil
	}
	open := func(name string) ([]actuator.Target, error) {
		return []actuator.Target{{KnobID: trimtab.KnobID{Resource: "cpu"}, Knob: &wordyKnob{memoryKnob{Name: name, now: units(0.123456)}, words}, Min: 0.123456, Max: 8.123456, Mode: trimtab.Recommend}}, nil
	}
	h.config.Finders, h.config.MaxKnobs = []actuator.Finder{{Workload: "checkout", Find: find, Open: open}}, actuator.MaxClusterKnobs
	h.open()
	b, err := json.Marshal(h.Holding())
	if n := len(h.Holding().Targets); n != 9000 || err != nil || len(b) > codec.MaxBytes {
		t.Errorf("%d knobs in %d bytes (%v), want all 9000 in at most %d", n, len(b), err, codec.MaxBytes)
	}
	if why := h.Holding().Targets[0].ReadOnly; !strings.HasPrefix(words, strings.TrimSuffix(why, "…")) || len(why) < 10 {
		t.Errorf("what is left of the reason is %q", why)
	}
}

// wordyKnob says much of itself, and stands on a node.
type wordyKnob struct {
	memoryKnob
	words string
}

func (k *wordyKnob) String() string                 { return "limit of " + k.Name }
func (k *wordyKnob) MayWrite(context.Context) error { return errors.New(k.words) }
func (k *wordyKnob) Traits() actuator.Traits        { return actuator.Traits{Status: k.Status} }
func (k *wordyKnob) Status(context.Context) *trimtab.KnobStatus {
	return &trimtab.KnobStatus{Node: "ip-10-12-13-14.eu-central-1.compute", Has: 7.91, Most: 4.5, By: k.words}
}

// countedKnob counts what is closed.
type countedKnob struct {
	*memoryKnob
	closed *int
}

func (k *countedKnob) Close() error { *k.closed++; return nil }

func TestPlansStayWithinWhatTheHostHas(t *testing.T) {
	for name, c := range map[string]struct {
		declared map[string]float64
		measured map[string]float64
		want     trimtab.Status
	}{
		"it has the whole pool":      {map[string]float64{"cpu": 8}, map[string]float64{"cpu": 4}, trimtab.Written},
		"nothing is known":           {nil, nil, trimtab.Written},
		"the host is smaller":        {map[string]float64{"cpu": 8}, map[string]float64{"cpu": 4}, trimtab.Refused},
		"the host alone is known":    {nil, map[string]float64{"cpu": 4}, trimtab.Refused},
		"the declared is smaller":    {map[string]float64{"cpu": 4}, map[string]float64{"cpu": 8}, trimtab.Refused},
		"both have room":             {map[string]float64{"cpu": 5}, map[string]float64{"cpu": 6}, trimtab.Written},
		"another resource is scarce": {nil, map[string]float64{"memory": 1}, trimtab.Written},
		"nonsense was measured":      {nil, map[string]float64{"cpu": math.NaN()}, trimtab.Written},
	} {
		h := newHost(t, units(2), units(2))
		h.config.Limits.Capacity, h.config.Shared = c.declared, name != "it has the whole pool"
		h.config.Measure = func() (map[string]float64, error) { return c.measured, nil }
		h.open()
		if got := h.statuses(h.plan(1, 1, set(0, units(2), units(3)))); got[0] != c.want {
			t.Errorf("%s: %s, want %s", name, got[0], c.want)
		}
		if err := h.Holding().Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheHoldingSaysWhatTheHostHasAndKeepsItWhileItCannotBeMeasured(t *testing.T) {
	h := newHost(t, units(2))
	measured, bad := map[string]float64{"cpu": 4}, error(nil)
	h.config.Measure = func() (map[string]float64, error) { return measured, bad }
	h.open()
	want := func(when string, cpu float64) {
		t.Helper()
		if got := h.Holding().Capacity; len(got) != 1 || got["cpu"] != cpu {
			t.Errorf("%s the holding says %v, want cpu %v", when, got, cpu)
		}
	}
	want("at the start", 4)
	measured = map[string]float64{"cpu": 2}
	h.pass(time.Minute)
	h.Tick(t.Context())
	want("after a change", 2)
	measured, bad = nil, errors.New("unreadable")
	h.pass(time.Minute)
	h.Tick(t.Context())
	want("while it cannot be measured", 2)
}

// What happens at random: instances come, go and come again, plans arrive,
// leases end, the actuator dies and starts. At any time a value that no plan
// wrote is an instance's own, and no plan brings the sum over the capacity; at the end
// every instance has its own baseline.
func TestInstancesThatComeAndGoAlwaysGetTheirOwnBaselineBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h, n := newNursery(t)
		const capacity = 4
		h.config.Limits.Capacity = map[string]float64{"cpu": capacity}
		h.open()
		baselines := map[string]trimtab.Amount{}
		sequence := uint64(0)
		for range rapid.IntRange(5, 40).Draw(r, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "instance")
			_, there := baselines[name]
			switch what := rapid.SampledFrom([]string{"bear", "remove", "stop", "start", "plan", "plan", "tick", "crash", "expire"}).Draw(r, "what"); {
			case what == "stop" && there:
				n.stopped[name] = true
			case what == "start":
				delete(n.stopped, name)
			case what == "bear":
				delete(n.stopped, name)
				baselines[name] = units(float64(rapid.IntRange(1, 10).Draw(r, "baseline")) / 10)
				n.bear(t, name, baselines[name])
			case what == "remove" && there:
				n.remove(t, name)
				delete(baselines, name)
			case what == "plan":
				sequence++
				var actions []trimtab.Action
				for _, k := range h.Holding().Targets {
					actions = append(actions, turn(k.Instance, k.Now, units(float64(rapid.IntRange(1, 20).Draw(r, "to"))/10+0.05)))
				}
				p := h.plan(1, sequence, actions...)
				p.Lease = 20
				before := n.sum(t, baselines)
				if o := h.Handle(t.Context(), p); o.Refused != "" {
					r.Fatalf("refused: %s", o.Refused)
				}
				if sum := n.sum(t, baselines); sum > max(before, capacity)+1e-3 {
					r.Fatalf("the plan made %v of %v, there are %v", sum, before, capacity)
				}
			case what == "crash":
				h.crash().open()
			case what == "expire":
				h.pass(time.Minute)
			}
			h.Tick(t.Context())
			running := 0
			for name, baseline := range baselines {
				if v := n.holds(t, name); !n.stopped[name] {
					running++
				} else if v != baseline {
					r.Fatalf("%s is stopped and was left with %v, its baseline is %v", name, v, baseline)
				}
			}
			if got := names(h); len(got) != running || n.open < len(got) {
				r.Fatalf("instances %q, %d open; want those of %v", got, n.open, baselines)
			}
			held := journaled(t, h)
			for name, baseline := range baselines {
				v := n.holds(t, name)
				if v != baseline && !slices.Contains(held, "knob/cpu/w\x00"+name) {
					r.Fatalf("%s has %v, its baseline is %v, and the journal has only %q", name, v, baseline, held)
				}
			}
		}
		if err := h.Close(t.Context()); err != nil {
			r.Fatal(err)
		}
		for name, baseline := range baselines {
			if got := n.holds(t, name); got != baseline {
				r.Fatalf("at the end %s has %v, its baseline is %v", name, got, baseline)
			}
		}
	})
}
