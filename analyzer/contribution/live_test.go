package contribution

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// traffic is live requests of web@a, which calls cart@a and db@b, for 10 s each.
type traffic struct {
	live *Live
	at   time.Time
	r    *rand.Rand
	// beside is that of the intervals to come.
	beside bool
}

func newTraffic(o Objective) *traffic {
	o.Workload, o.SLO = "shop", 0.1
	return &traffic{live: NewLive(o), at: noon, r: rand.New(rand.NewPCG(1, 2))}
}

// times are the ms of a component in one request: its own, and waiting for it.
type times func(component string) (own, wait float64)

// seconds sends n requests in an interval of 10 s.
func (t *traffic) slot(n int, of times) *colocation.Contributions {
	var h quantile.Histogram
	var pods []trimtab.ServpodSketch
	var calls []trimtab.CallSketch
	sums, waits := map[string]*trimtab.ServpodSketch{}, map[string]*trimtab.CallSketch{}
	tails := map[string]map[float64]*trimtab.TailSum{"web": {}, "cart": {}, "db": {}}
	for range n {
		total, parts := 0.0, map[string][2]float64{}
		for _, c := range []string{"cart", "db", "web"} {
			own, wait := of(c)
			parts[c] = [2]float64{own / 1e3, wait / 1e3}
			total += (own + wait) / 1e3
		}
		h.Add(total, 1)
		k := math.Ceil(2 * math.Log2(total))
		for c, x := range parts {
			p, d, s := sums[c], waits[c], x[0]+x[1]
			if p == nil {
				p = &trimtab.ServpodSketch{Component: c, Host: map[string]string{"web": "a", "cart": "a", "db": "b"}[c]}
				d = &trimtab.CallSketch{Caller: "web", Component: c}
				sums[c], waits[c] = p, d
			}
			p.N, p.Sum, p.Square, p.Wait = p.N+1, p.Sum+s, p.Square+s*s, p.Wait+x[1]
			p.Latency, p.LatencySquare, p.Cross = p.Latency+total, p.LatencySquare+total*total, p.Cross+s*total
			d.N, d.Own, d.Wait = d.N+1, d.Own+x[0], d.Wait+x[1]
			if tails[c][k] == nil {
				tails[c][k] = &trimtab.TailSum{k}
			}
			at := tails[c][k]
			at[1], at[2], at[3] = at[1]+1, at[2]+x[0], at[3]+x[1]
		}
	}
	for _, c := range []string{"cart", "db", "web"} {
		for _, k := range slices.Sorted(maps.Keys(tails[c])) {
			at := *tails[c][k]
			sums[c].Tail = append(sums[c].Tail, at)
			at[2] = 0
			waits[c].Tail = append(waits[c].Tail, at)
		}
		pods = append(pods, *sums[c])
		if c != "web" {
			calls = append(calls, *waits[c])
		}
	}
	from := t.at
	t.at = t.at.Add(10 * time.Second)
	t.live.Observe(Interval{From: from, To: t.at, Requests: float64(n), Latency: &h, Servpods: pods, Calls: calls, Beside: t.beside})
	return t.live.Report(t.at)
}

// around draws times around some ms.
func (t *traffic) around(ms float64) float64 { return ms * (0.8 + 0.4*t.r.Float64()) }

func (t *traffic) calm(c string) (own, wait float64) {
	if c == "web" {
		return t.around(5), 0
	}
	return t.around(5), t.around(1)
}

func growthOf(c *colocation.Contributions) string {
	switch g := c.Growth; {
	case g == nil:
		return "unknown"
	case !g.Changed:
		return "no change"
	default:
		var out []string
		for _, p := range g.Parts {
			if p.Share >= 0.1 {
				out = append(out, p.Component+"@"+p.Host)
			}
		}
		return strings.Join(out, " ")
	}
}

func TestLiveNamesTheServpodThatTheTailGrewIn(t *testing.T) {
	for name, c := range map[string]struct {
		after func(t *traffic, c string) (own, wait float64)
		want  string
	}{
		"nothing": {func(t *traffic, c string) (float64, float64) { return t.calm(c) }, "no change"},
		"a slow db": {func(t *traffic, c string) (float64, float64) {
			own, wait := t.calm(c)
			return own * map[string]float64{"db": 5, "web": 1, "cart": 1}[c], wait
		}, "db@b"},
		"waiting for the db": {func(t *traffic, c string) (float64, float64) {
			own, wait := t.calm(c)
			return own, wait * map[string]float64{"db": 30, "web": 1, "cart": 1}[c]
		}, "db@b"},
		"a starved web": {func(t *traffic, c string) (float64, float64) { own, wait := t.calm(c); return own, 30 * wait }, "web@a"},
		"one in twenty": {func(t *traffic, c string) (float64, float64) {
			own, wait := t.calm(c)
			if c == "cart" && t.r.IntN(20) == 0 {
				own *= 20
			}
			return own, wait
		}, "cart@a"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTraffic(Objective{})
			var got *colocation.Contributions
			for range 20 {
				got = x.slot(200, x.calm)
			}
			if growthOf(got) != "no change" {
				t.Fatalf("calm: %s", growthOf(got))
			}
			for range 3 {
				got = x.slot(200, func(name string) (float64, float64) { return c.after(x, name) })
			}
			if growthOf(got) != c.want {
				t.Errorf("%s, want %s: %+v", growthOf(got), c.want, got.Growth)
			}
		})
	}
}

func TestTheCallsAreThoseOfTheNewestSlot(t *testing.T) {
	x := newTraffic(Objective{})
	x.slot(100, x.calm)
	want := []colocation.Call{{From: "web", To: "cart", Rate: 20}, {From: "web", To: "db", Rate: 20}}
	if got := x.slot(200, x.calm); !slices.Equal(got.Calls, want) || got.Validate() != nil {
		t.Errorf("%+v, want %+v", got.Calls, want)
	}
	var h quantile.Histogram
	h.Add(0.01, 10)
	x.live.Observe(Interval{From: x.at, To: x.at.Add(10 * time.Second), Requests: 10, Latency: &h})
	if got := x.live.Report(x.at); got.Calls != nil {
		t.Errorf("%+v: nobody calls any longer", got.Calls)
	}
}

func TestWhatLastsIsWhatIsNormal(t *testing.T) {
	x := newTraffic(Objective{})
	slow := func(c string) (float64, float64) { own, wait := x.calm(c); return 4 * own, wait }
	for range 20 {
		x.slot(100, x.calm)
	}
	since, changed := time.Time{}, 0
	for range 3 * lasting {
		got := x.slot(100, slow)
		if got.Growth.Changed {
			changed++
			since = got.Growth.Since
		}
	}
	if changed < lasting || changed > lasting+2*nowSlots || since.Sub(noon) > 10*time.Minute {
		t.Errorf("%d slots are told as a change, since %v; it lasted from slot 20 on", changed, since.Sub(noon))
	}
}

// day sends loads from 6 to 60 requests/s. The tail of web is the load's, and the db's
// times scatter from a load on.
func (t *traffic) day(knee int) (got *colocation.Contributions) {
	for load := 1; load <= 10; load++ {
		got = t.slot(60*load, func(c string) (own, wait float64) {
			own, wait = t.calm(c)
			if c == "db" {
				own *= 1 + float64(load)/10
				if load > knee && t.r.IntN(10) == 0 {
					own *= 5
				}
			}
			return own, wait
		})
	}
	return got
}

func TestTheLoadlimitIsWhereTheTimesBeginToScatter(t *testing.T) {
	x := newTraffic(Objective{})
	var got *colocation.Contributions
	for range 6 {
		got = x.day(7)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if got.MaxLoad != 60 || got.Levels < 5 || got.Tail == nil || got.Servpods[1].Component != "db" {
		t.Fatalf("%+v", got)
	}
	db, web := got.Servpods[1], got.Servpods[2]
	if db.LoadLimit == nil || *db.LoadLimit < 0.7 || *db.LoadLimit > 0.9 || db.Origin != colocation.FromHistory {
		t.Errorf("loadlimit %v of db, want 0.8", db.LoadLimit)
	}
	if web.LoadLimit != nil && *web.LoadLimit < 0.7 {
		t.Errorf("loadlimit %v of web, whose times do not scatter more", *web.LoadLimit)
	}
	if db.Contribution < 3*math.Abs(web.Contribution) || db.Correlation < 0.8 {
		t.Errorf("db contributes %v, web %v", db.Contribution, web.Contribution)
	}
}

// What scatters because of the jobs says nothing of the load that it stands alone.
func TestTrafficBesideBestEffortJobsMovesNoLoadlimit(t *testing.T) {
	x := newTraffic(Objective{})
	x.beside = true
	for range 3 {
		x.day(3)
	}
	first := x.slot(60, x.calm)
	if db := first.Servpods[1]; db.LoadLimit != nil || db.Contribution == 0 || first.MaxLoad != 60 {
		t.Errorf("%+v of %v before it was seen alone", db, first.MaxLoad)
	}
	x.beside = false
	var got *colocation.Contributions
	for range 6 {
		got = x.day(7)
	}
	alone := *got.Servpods[1].LoadLimit
	x.beside = true
	for range 6 {
		got = x.day(3)
	}
	if limit := got.Servpods[1].LoadLimit; limit == nil || *limit != alone {
		t.Errorf("loadlimit %v, alone %v", limit, alone)
	}
	again := NewLive(x.live.objective)
	if err := again.Restore(x.live.State()); err != nil {
		t.Fatal(err)
	}
	if limit := again.Report(x.at).Servpods[1].LoadLimit; limit == nil || *limit != alone {
		t.Errorf("loadlimit %v after a restart, alone %v", limit, alone)
	}
}

func TestADeclaredThresholdStandsInForWhatWasFound(t *testing.T) {
	limit, slack := 0.5, 0.2
	x := newTraffic(Objective{Servpods: map[string]Thresholds{"db": {LoadLimit: &limit, SlackLimit: &slack}}})
	got := x.slot(200, x.calm)
	if db := got.Servpods[1]; db.LoadLimit == nil || *db.LoadLimit != limit || db.Origin != colocation.Declared || *db.SlackLimit != slack || db.SlackOrigin != colocation.Declared {
		t.Errorf("%+v", db)
	}
	if cart := got.Servpods[0]; cart.LoadLimit != nil || cart.SlackLimit != nil {
		t.Errorf("%+v: nothing is known of it", cart)
	}
}

func TestOfTooFewRequestsForTheQuantileTheTailIsTheSlowest(t *testing.T) {
	x := newTraffic(Objective{Quantile: 0.99})
	x.slot(98, x.calm)
	slow := func(c string) (own, wait float64) { own, wait = x.calm(c); return 100 * own, wait }
	few := x.slot(1, slow)
	if few.Tail == nil || few.Requests != 99 {
		t.Fatalf("%+v", few)
	}
	slowest := *few.Tail
	if got := x.slot(101, x.calm); got.Tail == nil || *got.Tail > slowest/2 {
		t.Errorf("of 99 %v, of 200 %v: want much less", slowest, got.Tail)
	}
}

func TestADeclaredMaxLoadCountsUntilMoreWasSeen(t *testing.T) {
	x := newTraffic(Objective{MaxLoad: 50})
	if got := x.slot(100, x.calm); got.MaxLoad != 50 || got.Load != 10 {
		t.Errorf("%v of %v, want 10 of 50", got.Load, got.MaxLoad)
	}
	if got := x.slot(1000, x.calm); got.MaxLoad != 100 {
		t.Errorf("%v, want 100", got.MaxLoad)
	}
}

func TestAnOldRegimeFades(t *testing.T) {
	x := newTraffic(Objective{})
	for range 5 {
		x.slot(500, x.calm)
	}
	for range 8 * halfLife / 10 / 10 {
		x.slot(50, x.calm)
	}
	if most := x.live.levels.most(); most > 50 {
		t.Errorf("largest load %v", most)
	}
	total := 0.0
	for _, c := range x.live.levels.clusters {
		total += c.requests
	}
	if total > 50*2*halfLife/10 || len(x.live.levels.clusters) > maxClusters {
		t.Errorf("%v requests in %d clusters", total, len(x.live.levels.clusters))
	}
}

// Whatever a peer says, what comes out is valid, and bounded.
func TestLiveStaysFiniteAndBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := NewLive(Objective{Workload: "w", SLO: rapid.SampledFrom([]float64{0.1, 1e-9, 1e9}).Draw(rt, "slo")})
		at := noon
		for range rapid.IntRange(1, 25).Draw(rt, "intervals") {
			var h quantile.Histogram
			n := rapid.Float64Range(1e-3, 1e12).Draw(rt, "n")
			h.Add(rapid.Float64Range(0, 1e12).Draw(rt, "latency"), n)
			var pods []trimtab.ServpodSketch
			for i := range rapid.IntRange(0, trimtab.MaxSketchServpods).Draw(rt, "pods") {
				v := rapid.Float64Range(0, 1e300)
				pods = append(pods, trimtab.ServpodSketch{Component: string(rune('A' + i%26)), Host: string(rune('a' + rapid.IntRange(0, 400).Draw(rt, "host"))), N: rapid.Float64Range(1e-300, 1e300).Draw(rt, "N"),
					Sum: v.Draw(rt, "sum"), Square: v.Draw(rt, "square"), Latency: v.Draw(rt, "y"), LatencySquare: v.Draw(rt, "yy"), Cross: v.Draw(rt, "xy"),
					Tail: []trimtab.TailSum{{float64(rapid.IntRange(-64, 64).Draw(rt, "k")), 1, v.Draw(rt, "own"), v.Draw(rt, "wait")}}})
			}
			var calls []trimtab.CallSketch
			for range rapid.IntRange(0, trimtab.MaxSketchCalls).Draw(rt, "calls") {
				calls = append(calls, trimtab.CallSketch{Caller: rapid.StringN(1, 3, 9).Draw(rt, "caller"), Component: rapid.StringN(1, 3, 9).Draw(rt, "callee"), N: rapid.Float64Range(5e-324, math.MaxFloat64).Draw(rt, "of it")})
			}
			from := at
			at = at.Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "s")) * time.Second)
			l.Observe(Interval{From: from, To: at, Requests: n, Latency: &h, Servpods: merge.Servpods(nil, pods), Calls: merge.Calls(nil, calls)})
			if c := l.Report(at); c != nil {
				if err := c.Validate(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if len(l.levels.clusters) > maxClusters || len(l.growth.before.servpods) > maxPods {
			rt.Fatalf("%d clusters, %d Servpods", len(l.levels.clusters), len(l.growth.before.servpods))
		}
	})
}

func TestARestoredLiveSaysTheSame(t *testing.T) {
	x := newTraffic(Objective{})
	for i := range 30 {
		x.slot(40*(1+i%4), x.calm)
	}
	b, err := json.Marshal(x.live.State())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("state of %d bytes", len(b))
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	again := newTraffic(Objective{})
	if err := again.live.Restore(&s); err != nil {
		t.Fatal(err)
	}
	again.at = x.at
	again.r, x.r = rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(5, 5))
	for range 10 {
		want, _ := json.Marshal(x.slot(100, x.calm))
		got, _ := json.Marshal(again.slot(100, again.calm))
		if string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	s.Levels[0].Pods[0].Sum = -1
	if err := again.live.Restore(&s); err == nil {
		t.Error("a sum below 0 is restored")
	}
}

func TestAPeerIsAServpodWithoutALoadLimitAlsoAfterARestart(t *testing.T) {
	l := NewLive(Objective{Workload: "shop", SLO: 0.1})
	r := rand.New(rand.NewPCG(29, 3))
	for slot := range 80 {
		load := 200 + 200*(slot%5) // the time of both scatters at the highest load
		var h quantile.Histogram
		web, db := trimtab.ServpodSketch{Component: "web", Host: "a"}, trimtab.ServpodSketch{Component: "postgresql orders-db", Peer: true}
		for range load {
			total := 0.0
			for _, p := range []*trimtab.ServpodSketch{&db, &web} {
				x := 0.01
				if load == 1000 {
					x = 0.02 * r.ExpFloat64()
				}
				p.N, p.Sum, p.Square = p.N+1, p.Sum+x, p.Square+x*x
				total += x
			}
			h.Add(total, 1)
		}
		from := noon.Add(time.Duration(slot) * 10 * time.Second)
		l.Observe(Interval{From: from, To: from.Add(10 * time.Second), Requests: float64(load), Latency: &h, Servpods: []trimtab.ServpodSketch{db, web}})
	}
	again := NewLive(l.objective)
	if err := again.Restore(l.State()); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Live{l, again} {
		got := l.Report(noon).Servpods
		if len(got) != 2 || got[0].Component != "postgresql orders-db" || !got[0].Peer || got[0].LoadLimit != nil || got[1].Peer || got[1].LoadLimit == nil {
			t.Errorf("%+v", got)
		}
	}
}

func TestACallOfAPeerDoesNotHideThatItsCallerIsStarved(t *testing.T) {
	call := func(callee string, wait float64) trimtab.CallSketch {
		return trimtab.CallSketch{Caller: "web", Component: callee, N: 100, Own: 1, Wait: wait}
	}
	pods := []trimtab.ServpodSketch{{Component: "db", Peer: true}}
	before := &slot{servpods: pods, calls: []trimtab.CallSketch{call("cart", 1), call("db", 0), call("stock", 1)}}
	now := &slot{servpods: pods, calls: []trimtab.CallSketch{call("cart", 9), call("db", 0), call("stock", 9)}}
	if got := starvedNow(before, now); !got["web"] {
		t.Errorf("%v", got)
	}
	var one Requests
	one.Add(&path.Request{End: 1e9, Adjusted: 1, Visits: []path.Visit{{Component: "web", Own: 2e8, OnPath: 2e8}, {Caller: "web", Component: "db", Called: true, Peer: true, Own: 8e8, OnPath: 8e8}}})
	for _, e := range one.edges {
		if e.wait {
			t.Error("the waiting for a peer is told")
		}
	}
}
