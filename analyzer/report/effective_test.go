package report

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

var begin = time.Unix(1_700_000_000, 0).UTC()

func ms(n int) time.Time { return begin.Add(time.Duration(n) * time.Millisecond) }

// knob is what a holding says of one instance.
type knob struct {
	instance string
	amount   trimtab.Amount
	since    int // ms
	problem  string
}

func holds(host string, at int, knobs ...knob) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "p", Host: host, Time: ms(at)}
	for _, k := range knobs {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: "w", Instance: k.instance, Resource: "cpu"},
			Now: k.amount, Since: ms(k.since), Problem: k.problem, Max: 4})
	}
	return h
}

func historyOf(t *testing.T, all ...*trimtab.Holding) *History {
	t.Helper()
	h, room := &History{resource: "cpu", silence: 10 * time.Second}, MaxKept
	for _, v := range all {
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
		h.Observe(v, "w", &room)
	}
	return h
}

func cores(v float64) trimtab.Amount { return trimtab.Units(v) }

func TestTheEffectiveAllocationIsThatOfTheInstanceWithTheLeastForItsShare(t *testing.T) {
	one := func(name string, v float64) knob { return knob{instance: name, amount: cores(v), since: -9000} }
	none := knob{instance: "x", amount: trimtab.Unlimited(), since: -9000}
	blind := knob{instance: "y", amount: cores(0.1), since: -9000, problem: "permission denied"}
	id := func(host, name string) instanceID { return instanceID{host, name} }
	for name, c := range map[string]struct {
		holdings []*trimtab.Holding
		loads    map[instanceID]float64
		want     trimtab.Amount
	}{
		"one has what it has":                 {[]*trimtab.Holding{holds("h", 0, one("", 2))}, nil, cores(2)},
		"two on one host":                     {[]*trimtab.Holding{holds("h", 0, one("a", 2), one("b", 3))}, nil, cores(4)},
		"one on each of three hosts":          {[]*trimtab.Holding{holds("h", 0, one("", 2)), holds("i", 0, one("", 5)), holds("j", 0, one("", 3))}, nil, cores(6)},
		"the larger has the larger load":      {[]*trimtab.Holding{holds("h", 0, one("a", 1), one("b", 3))}, map[instanceID]float64{id("h", "a"): 10, id("h", "b"): 30}, cores(4)},
		"the larger has the smaller load":     {[]*trimtab.Holding{holds("h", 0, one("a", 1), one("b", 3))}, map[instanceID]float64{id("h", "a"): 30, id("h", "b"): 10}, cores(4.0 / 3)},
		"the load of one is not known":        {[]*trimtab.Holding{holds("h", 0, one("a", 1), one("b", 3))}, map[instanceID]float64{id("h", "a"): 30}, cores(2)},
		"an unlimited one does not bind":      {[]*trimtab.Holding{holds("h", 0, one("a", 2), none)}, nil, cores(4)},
		"all are unlimited":                   {[]*trimtab.Holding{holds("h", 0, none)}, nil, trimtab.Unlimited()},
		"one that cannot be read":             {[]*trimtab.Holding{holds("h", 0, one("a", 2), one("b", 3), blind)}, nil, cores(4)},
		"another workload's is another's":     {[]*trimtab.Holding{holds("h", 0, one("a", 2)), {Pool: "p", Host: "i", Time: ms(0), Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Pool: "p", Host: "i", Workload: "v", Resource: "cpu"}, Now: cores(1)}}}}, nil, cores(2)},
		"the one that went does not count":    {[]*trimtab.Holding{holds("h", -60000, one("a", 2), one("b", 3)), holds("h", -50000, one("b", 3))}, nil, cores(3)},
		"an instance named twice counts once": {[]*trimtab.Holding{holds("h", 0, one("a", 2), one("a", 9))}, nil, cores(2)},
		"all are gone":                        {[]*trimtab.Holding{holds("h", -60000, one("a", 2)), holds("h", -50000)}, nil, cores(0)},
	} {
		f := historyOf(t, c.holdings...).During(ms(0), ms(1000), time.Second, c.loads)
		if !f.Known || f.Transient || !f.Amount.Equal(c.want, 1e-12) || !c.want.Unlimited && math.Abs(f.Mean-c.want.Value) > 1e-12 {
			t.Errorf("%s: %+v, want %v", name, f, c.want)
		}
	}
}

func TestWhereNoInstanceCanBeReadNothingIsKnown(t *testing.T) {
	blind := func(name string) knob {
		return knob{instance: name, amount: cores(2), since: -9000, problem: "no such file"}
	}
	if f := historyOf(t, holds("h", 0, blind("a"), blind("b"))).During(ms(0), ms(1000), 0, nil); f.Known {
		t.Errorf("%+v", f)
	}
	if f := (&History{}).During(ms(0), ms(1000), 0, nil); f.Known || f.Transient {
		t.Errorf("nobody told anything: %+v", f)
	}
}

func TestAnInstanceThatComesOrGoesMakesATransient(t *testing.T) {
	a, b := knob{instance: "a", amount: cores(2), since: -9000}, knob{instance: "b", amount: cores(2), since: 500}
	old := b
	old.since = -9000
	for name, c := range map[string]struct {
		holdings []*trimtab.Holding
		want     float64
	}{
		"comes":                   {[]*trimtab.Holding{holds("h", -1, a), holds("h", 500, a, b)}, 3},
		"goes":                    {[]*trimtab.Holding{holds("h", -1, a, old), holds("h", 500, a)}, 3},
		"comes on another host":   {[]*trimtab.Holding{holds("h", -1, a), holds("i", 500, b)}, 3},
		"cannot be read any more": {[]*trimtab.Holding{holds("h", -1, a, old), holds("h", 500, a, knob{instance: "b", since: 500, problem: "x"})}, 3},
	} {
		h := historyOf(t, c.holdings...)
		if f := h.During(ms(0), ms(1000), 0, nil); !f.Transient || !f.Known || math.Abs(f.Mean-c.want) > 1e-12 {
			t.Errorf("%s: %+v, want a transient with a mean of %v", name, f, c.want)
		}
		if f := h.During(ms(1000), ms(2000), time.Second, nil); !f.Transient {
			t.Errorf("%s: it has not settled: %+v", name, f)
		}
		if f := h.During(ms(2000), ms(3000), time.Second, nil); f.Transient {
			t.Errorf("%s: a second later: %+v", name, f)
		}
	}
}

func TestAHostThatTellsNothingWhileOthersDoIsTakenForLost(t *testing.T) {
	a := knob{amount: cores(2), since: -9000}
	h := historyOf(t, holds("h", 0, a), holds("i", 0, a), holds("j", 0, a))
	room := MaxKept
	for at := 0; at <= 30_000; at += 1000 {
		h.Observe(holds("h", at, a), "w", &room)
		h.Observe(holds("i", at, a), "w", &room)
	}
	for at, want := range map[int]float64{5: 6, 12: 4, 25: 4} {
		if f := h.During(ms(1000*at), ms(1000*at+1000), time.Second, nil); !f.Known || f.Transient || f.Amount.Value != want {
			t.Errorf("second %d: %+v, want %v", at, f, want)
		}
	}
	if f := h.During(ms(9500), ms(10500), 0, nil); !f.Transient {
		t.Errorf("when it is lost: %+v", f)
	}
	h.Forget(ms(30_000), &room)
	if h.kept != 2 || len(h.hosts) != 2 {
		t.Errorf("%d instances on %d hosts are kept of two", h.kept, len(h.hosts))
	}
	h.Observe(holds("j", 31_000, a), "w", &room)
	if f := h.During(ms(31_000), ms(32_000), 0, nil); f.Amount.Value != 6 {
		t.Errorf("it came back: %+v", f)
	}
	// Where nobody else tells anything, it is not the host that is silent.
	if f := historyOf(t, holds("h", 0, a)).During(ms(1e6), ms(1e6+1000), 0, nil); !f.Known || f.Amount.Value != 2 {
		t.Errorf("alone: %+v", f)
	}
}

func TestAHoldingOfAMillionInstancesCostsBoundedMemoryAndMakesTheAllocationUnknown(t *testing.T) {
	h, room := &History{resource: "cpu"}, 1500
	many := make([]knob, 1_000_00)
	for i := range many {
		many[i] = knob{instance: fmt.Sprintf("%06d", i), amount: cores(1)}
	}
	refused := h.Observe(holds("h", 0, many...), "w", &room)
	if h.kept != MaxInstances || room != 1500-MaxInstances || refused != uint64(len(many)-MaxInstances) {
		t.Errorf("%d kept, room for %d, %d refused", h.kept, room, refused)
	}
	if f := h.During(ms(0), ms(1000), 0, nil); f.Known {
		t.Errorf("%+v of instances that are not all known", f)
	}
	other := &History{resource: "cpu"}
	if other.Observe(holds("h", 0, many...), "w", &room); other.kept != 500 || room != 0 {
		t.Errorf("%d kept of another, room for %d", other.kept, room)
	}
	// What is gone makes room for what comes.
	h.Observe(holds("h", 1000, many[:3]...), "w", &room)
	if h.Observe(holds("h", 2000, many[5000:5010]...), "w", &room); h.kept > MaxInstances || room < 0 {
		t.Errorf("%d kept, room for %d", h.kept, room)
	}
	if f := h.During(ms(2000), ms(3000), 0, nil); !f.Known || f.Amount.Value != 10 {
		t.Errorf("%+v of ten instances with 1 each", f)
	}
	h.Forget(ms(10_000), &room)
	if h.kept != 10 || room != 1500-500-10 {
		t.Errorf("%d kept of ten, room for %d", h.kept, room)
	}
}

func TestThatNothingIsLeftOfAWorkloadIsRemembered(t *testing.T) {
	h, room := historyOf(t, holds("h", 0, knob{instance: "a", amount: cores(2)}, knob{instance: "b", amount: cores(2)}), holds("h", 1000)), MaxKept
	h.Forget(ms(5000), &room)
	if f := h.During(ms(8000), ms(9000), 0, nil); h.kept != 1 || !f.Known || f.Amount != cores(0) {
		t.Errorf("%d kept, %+v: want that it has nothing", h.kept, f)
	}
}

// truth is what one holding said of one host, and so what was in force until the
// next of it.
type truth map[string]knob

// slowly recomputes during by looking at every millisecond.
func slowly(of map[string]map[int]truth, from, to, settle int, silence int, loads map[instanceID]float64) InForce {
	last := map[string]int{}
	latest := math.MinInt
	for host, said := range of {
		last[host] = math.MinInt
		for at := range said {
			last[host] = max(last[host], at)
		}
		latest = max(latest, last[host])
	}
	type view struct {
		told, unknown bool
		amount        trimtab.Amount
		who           string
	}
	at := func(t int) (v view) {
		var read, blind []knob
		var ids []instanceID
		for _, host := range []string{"h", "i", "j"} {
			if latest-last[host] > silence && t >= last[host]+silence {
				continue
			}
			newest := math.MinInt
			for s := range of[host] {
				if s <= t {
					newest = max(newest, s)
				}
			}
			if newest == math.MinInt {
				continue
			}
			for _, name := range []string{"", "a", "b"} {
				for s := range of[host] {
					_, here := of[host][s][name]
					v.told = v.told || s <= t && here
				}
				k, ok := of[host][newest][name]
				switch {
				case !ok:
				case k.problem != "":
					blind = append(blind, k)
				default:
					read = append(read, k)
					ids = append(ids, instanceID{host, name})
					v.who += host + "/" + name + " "
				}
			}
		}
		all := read
		if len(read) == 0 {
			all, v.unknown = blind, len(blind) > 0
		}
		sum, known := 0.0, len(read) > 0
		for _, id := range ids {
			sum += loads[id]
			known = known && loads[id] > 0
		}
		v.amount = trimtab.Amount{Unlimited: len(all) > 0}
		for i, k := range all {
			share := 1 / float64(len(all))
			if known {
				share = loads[ids[i]] / sum
			}
			if !k.amount.Unlimited && (v.amount.Unlimited || k.amount.Value/share < v.amount.Value) {
				v.amount = cores(k.amount.Value / share)
			}
		}
		return v
	}
	var f InForce
	for t := from; t < to; t++ {
		f.Mean += at(t).amount.Value / float64(to-from)
	}
	a := at(from - settle)
	for t := from - settle + 1; t < to; t++ {
		b := at(t)
		if !b.told && a.told { // lost
			b.told, b.unknown = true, true
		}
		same := a.who == b.who && a.unknown == b.unknown && a.amount.Equal(b.amount, 1e-9)
		switch {
		case !b.told || a.told && same:
			continue
		case !a.told:
			f.Transient = f.Transient || t > from
		case a.who != b.who, a.unknown || b.unknown, a.amount.Unlimited || b.amount.Unlimited, math.Abs(a.amount.Value-b.amount.Value) > 0.05*a.amount.Value:
			f.Transient = true
		}
		a = b
	}
	f.Amount, f.Known = a.amount, a.told && !a.unknown
	return f
}

func TestWhatOnlyALostHostHadIsNotKnownToBeInForce(t *testing.T) {
	h, room := &History{resource: "cpu", silence: 40 * time.Millisecond}, MaxKept
	h.Observe(holds("h", 0, knob{instance: "a", amount: cores(2)}), "w", &room)
	h.Observe(holds("i", 50, knob{instance: "a", since: 50, amount: cores(3)}), "w", &room)
	if f := h.During(ms(0), ms(45), 0, nil); f.Known || !f.Transient {
		t.Errorf("from the loss of the one host until another tells: %+v", f)
	}
	if f := h.During(ms(0), ms(40), 0, nil); !f.Known || f.Amount != cores(2) {
		t.Errorf("before the loss: %+v", f)
	}
	if f := h.During(ms(0), ms(60), 0, nil); !f.Known || f.Amount != cores(3) {
		t.Errorf("once another host told: %+v", f)
	}
}

func TestTheEffectiveAllocationIsThatOfEveryInstantAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const silence = 40
		h, room := &History{resource: "cpu", silence: silence * time.Millisecond}, MaxKept
		of := map[string]map[int]truth{}
		var all []*trimtab.Holding
		for _, host := range []string{"h", "i", "j"}[:rapid.IntRange(1, 3).Draw(t, "hosts")] {
			of[host] = map[int]truth{}
			now := truth{}
			at := rapid.IntRange(0, 30).Draw(t, "first")
			for range rapid.IntRange(1, 12).Draw(t, "holdings") {
				next := truth{}
				for _, name := range []string{"", "a", "b"} {
					k, there := now[name]
					if !there || rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
						k = knob{instance: name, since: at, amount: cores(float64(rapid.IntRange(0, 60).Draw(t, "tenths")) / 10)}
						switch rapid.IntRange(0, 9).Draw(t, "kind") {
						case 0:
							k.amount = trimtab.Unlimited()
						case 1:
							k.problem = "x"
						case 2, 3, 4:
							continue // not there
						}
					}
					next[name] = k
				}
				now, of[host][at] = next, next
				v := holds(host, at)
				for _, name := range []string{"b", "", "a"} {
					if k, ok := next[name]; ok {
						v.Targets = append(v.Targets, holds(host, at, k).Targets...)
					}
				}
				all = append(all, v)
				at += rapid.IntRange(1, 20).Draw(t, "pause")
			}
		}
		slices.SortStableFunc(all, func(a, b *trimtab.Holding) int { return a.Time.Compare(b.Time) })
		for _, v := range all {
			h.Observe(v, "w", &room)
			if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				h.Observe(v, "w", &room)
			}
		}
		// An instance is not known of before a holding named it: then nobody told.
		loads := map[instanceID]float64{}
		for host := range of {
			for _, name := range []string{"", "a", "b"} {
				if rapid.Bool().Draw(t, "load is known") {
					loads[instanceID{host, name}] = float64(rapid.IntRange(1, 9).Draw(t, "load"))
				}
			}
		}
		from := rapid.IntRange(-5, 120).Draw(t, "from")
		to, settle := from+rapid.IntRange(1, 80).Draw(t, "length"), rapid.IntRange(0, 20).Draw(t, "settle")
		got := h.During(ms(from), ms(to), time.Duration(settle)*time.Millisecond, loads)
		want := slowly(of, from, to, settle, silence, loads)
		if got.Known != want.Known || got.Transient != want.Transient || !got.Amount.Equal(want.Amount, 1e-9) || math.Abs(got.Mean-want.Mean) > 1e-9 {
			t.Fatalf("[%d, %d) settle %d: %+v, by every instant alone %+v\n%v", from, to, settle, got, want, of)
		}
	})
}

func TestWhileARolloutRunsAReportIsATransientWhichTeachesNothing(t *testing.T) {
	h, room := NewHistory("cpu", 0), 100
	begin := time.Unix(1_000_000_000, 0)
	tell := func(after time.Duration, s *trimtab.KnobStatus) {
		at := begin.Add(after)
		h.Observe(&trimtab.Holding{Pool: "p", Host: "k", Time: at, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Workload: "a", Instance: "1", Resource: "cpu"}, Now: trimtab.Units(2), Since: begin, Max: 4, Status: s}}}, "a", &room)
	}
	in := func(from time.Duration) InForce {
		return h.During(begin.Add(from), begin.Add(from+5*time.Second), time.Second, nil)
	}
	tell(0, &trimtab.KnobStatus{})
	if f := in(2 * time.Second); f.Transient || f.Amount.Value != 2 {
		t.Errorf("before: %+v", f)
	}
	tell(8*time.Second, &trimtab.KnobStatus{Rollout: true})
	if f := in(5 * time.Second); !f.Transient || !f.Known {
		t.Errorf("during: %+v", f)
	}
	// Holdings that say nothing new are seconds apart: between two of them it runs still.
	if f := in(15 * time.Second); !f.Transient {
		t.Errorf("no holding said that it ended: %+v", f)
	}
	tell(22*time.Second, &trimtab.KnobStatus{})
	if f := in(19 * time.Second); !f.Transient {
		t.Errorf("until a holding said that it ended: %+v", f)
	}
	if f := in(30 * time.Second); f.Transient {
		t.Errorf("after: %+v", f)
	}
}

func TestAnInstanceThatIsNotReadyCountsOnceItServes(t *testing.T) {
	h, room := NewHistory("cpu", 0), 100
	begin := time.Unix(1_000_000_000, 0)
	tell := func(after time.Duration, phase trimtab.Phase) {
		targets := make([]trimtab.KnobState, 2)
		for i, p := range []trimtab.Phase{"", phase} {
			targets[i] = trimtab.KnobState{KnobID: trimtab.KnobID{Workload: "a", Instance: string(rune('1' + i)), Resource: "cpu"}, Now: trimtab.Units(2), Since: begin, Max: 4, Status: &trimtab.KnobStatus{Phase: p}}
		}
		h.Observe(&trimtab.Holding{Pool: "p", Host: "k", Time: begin.Add(after), Targets: targets}, "a", &room)
	}
	has := func(at time.Duration) float64 {
		return h.During(begin.Add(at), begin.Add(at+time.Second), 0, nil).Amount.Value
	}
	for i := range 5 {
		tell(time.Duration(i)*time.Second, trimtab.Unready)
	}
	for i := range 5 {
		tell(time.Duration(10+i)*time.Second, "")
	}
	tell(20*time.Second, trimtab.Ending)
	for at, want := range map[time.Duration]float64{3 * time.Second: 2, 9 * time.Second: 2, 12 * time.Second: 4, 18 * time.Second: 4, 21 * time.Second: 2} {
		if got := has(at); got != want {
			t.Errorf("after %v: %v, want %v", at, got, want)
		}
	}
}
