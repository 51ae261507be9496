package kubernetes

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/packing"
	"github.com/trimtab/trimtab/planner/replicas"
	"github.com/trimtab/trimtab/sim"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// The policies. Oracle knows the loads to come and the performance, and sizes without delay: nothing
// on a real cluster can.
const (
	Trimtab = "trimtab"
	HPA     = "hpa"
	KEDA    = "keda"
	VPA     = "vpa"
	EKS     = "eks"
	DPA     = "dpa"
	Oracle  = "oracle"
)

// ReplayNames returns the policies with which a recording can be replayed.
func ReplayNames() []string { return []string{HPA, KEDA, VPA, EKS, DPA, Trimtab} }

// Point is the load of an interval, with the time at which that ends, in requests per second.
type Point struct {
	At   time.Time
	Load float64
}

// Recorded is one workload of a recording, with the pods with which it is replayed.
type Recorded struct {
	// Service has the name, the cost of a request, the SLO (Fraction is the target performance),
	// and the start time of a pod.
	Service
	// Points are in the order of time. Load, if not nil, returns the load in their place, at a second
	// after the beginning; they then only say how long the replay is.
	Points []Point
	Load   func(second float64) float64
	// Predict returns the performance at an effective allocation under a load, as learnt from the
	// recording; nil: the formula of the package.
	Predict func(cores, load float64) trimtab.Band
	// Shares says that performance is the share of requests in time.
	Shares bool
	// Replicas pods of Request cores exist at first; Sizes and Counts are trimtab's bounds.
	Replicas int
	Request  float64
	Sizes    replicas.Size
	Counts   replicas.Count
	HPA      HPAWords
	KEDA     KEDAWords
	VPA      VPAWords
}

// Replay plays recorded loads with each autoscaler, each in a separate world that starts with the
// same pods. The first part, Learn, is not scored. Gaps in which no workload has a record are
// skipped.
type Replay struct {
	Workloads []Recorded
	// Interval is the interval between the points.
	Interval time.Duration
	Run      []string
	Learn    time.Duration
	// Pool is the capacity in cores; 0: unlimited.
	Pool float64
	// Node is what a node has for pods, in cores; 0: nodes are not counted.
	Node float64
	Seed uint64
	// Runner is required. Stop, if not nil, is called every simulated hour; true ends the replay.
	// Done, if not nil, is called after each policy.
	Runner sim.Runner
	Stop   func() bool
	Done   func()
}

// Played is the result of one policy.
type Played struct {
	Policy string `json:"policy"`
	// Total is the sum over the workloads; its least shares are the minimum over them, and its advice
	// is the latest of theirs.
	Total     Score   `json:"total"`
	Workloads []Score `json:"workloads"`
	// Nodes is the mean number of nodes that the requests of all pods need by best fit, each quarter of
	// an hour; 0: not counted.
	Nodes float64 `json:"nodes,omitempty"`
}

// maxTicks is the longest replay: two years.
const maxTicks = 2 * 365 * day / tick

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Replay) Validate() error {
	if err := sim.Known("policy", x.Run, append(ReplayNames(), Oracle)); err != nil {
		return err
	}
	if len(x.Workloads) == 0 || x.Interval <= 0 || x.Learn < 0 || !(x.Pool >= 0 && x.Pool <= 1e6) || !(x.Node >= 0 && x.Node <= 1e6) {
		return trimtab.Invalidf("replay: %d workloads, interval %v, learn %v, pool %v: want at least one, an interval > 0, and 0 or more", len(x.Workloads), x.Interval, x.Learn, x.Pool)
	}
	from, to := x.Bounds()
	if n := to.Sub(from) / (tick * time.Second); n > maxTicks {
		return trimtab.Invalidf("replay: %v of loads, limit two years", to.Sub(from))
	}
	if to.Sub(from) <= x.Learn {
		return trimtab.Invalidf("replay: %v of loads, of which %v are for learning: nothing is left to score", to.Sub(from), x.Learn)
	}
	for i := range x.Workloads {
		if err := x.Workloads[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorded) validate() error {
	switch {
	case len(r.Points) == 0:
		return trimtab.Invalidf("replay of %.100q: no load was recorded", r.Name)
	case !(r.Cost > 0 && r.Cost < 1e6):
		return trimtab.Invalidf("replay of %.100q: a request costs %v core-seconds: want more than 0", r.Name, r.Cost)
	case !(r.Request > 0 && r.Request <= 1e4) || r.Replicas < 1 || r.Replicas > 10_000:
		return trimtab.Invalidf("replay of %.100q: %d pods of %v cores: want 1 to 10000, and more than 0", r.Name, r.Replicas, r.Request)
	case !(r.Fraction > 0) || r.Predict == nil && !(r.Latency > 0 && r.Fraction < 1):
		return trimtab.Invalidf("replay of %.100q: SLO of %v within %v s: want more than 0, and without a curve a share less than 1 and a latency", r.Name, r.Fraction, r.Latency)
	}
	for i := range r.Points {
		if p := &r.Points[i]; !(p.Load >= 0 && p.Load <= 1e12) || i > 0 && !p.At.After(r.Points[i-1].At) {
			return trimtab.Invalidf("replay of %.100q: load %v at %v: want 0 or more, in order of time", r.Name, p.Load, p.At)
		}
	}
	w := replicas.Workload{Name: r.Name, Size: r.Sizes, Count: r.Counts}
	return w.Validate()
}

// Bounds returns when the recorded loads begin and end.
func (x *Replay) Bounds() (from, to time.Time) {
	for i := range x.Workloads {
		p := x.Workloads[i].Points
		if len(p) == 0 {
			continue
		}
		if first := p[0].At.Add(-x.Interval); from.IsZero() || first.Before(from) {
			from = first
		}
		if last := p[len(p)-1].At; last.After(to) {
			to = last
		}
	}
	return from, to
}

// Play plays all policies.
func (x *Replay) Play() ([]Played, error) {
	if err := x.Validate(); err != nil {
		return nil, err
	}
	out, errs := make([]Played, len(x.Run)), make([]error, len(x.Run))
	x.Runner(len(x.Run), func(i int) {
		out[i], errs[i] = x.play(x.Run[i])
		if x.Done != nil {
			x.Done()
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// gap is the time without any record after which the rest of it is skipped, in seconds.
const gap = 60

func (x *Replay) play(name string) (Played, error) {
	w := x.world()
	p, err := x.policy(name, w)
	if err != nil {
		return Played{}, err
	}
	from, to := x.Bounds()
	end, silent := int(to.Sub(from).Seconds()), 0
	var nodes []int
	for w.second < end {
		if w.second%3600 == 0 && x.Stop != nil && x.Stop() {
			return Played{}, fmt.Errorf("replay: %w", sim.ErrStopped)
		}
		if silent += tick; slices.ContainsFunc(w.places, func(p *place) bool { _, ok := p.load(float64(w.second)); return ok }) {
			silent = 0
		}
		if silent > gap {
			w.second += tick
			continue
		}
		w.play()
		if w.second%look == 0 {
			seen := make([]report, len(w.places))
			for i := range seen {
				seen[i] = w.places[i].seen()
			}
			p.act(w, seen)
			for _, p := range w.places {
				p.looked(w.scored())
			}
			if x.Node > 0 && w.scored() && w.second%900 == 0 {
				nodes = append(nodes, w.nodes(x.Node))
			}
		}
	}
	out := tallied(name, w)
	for _, n := range nodes {
		out.Nodes += float64(n) / float64(len(nodes))
	}
	return out, nil
}

// nodes returns how many nodes of so many cores all pods need.
func (w *world) nodes(cores float64) int {
	var pods []packing.Amounts
	for _, p := range w.places {
		for i := range p.pods {
			pods = append(pods, packing.Amounts{CPU: p.pods[i].asked})
		}
	}
	return packing.BestFit(pods, []packing.Amounts{{CPU: cores}}).Nodes
}

// tallied returns the scores of a world and their total.
func tallied(name string, w *world) Played {
	out := Played{Policy: name, Total: Score{Served: 1, Needed: 1}}
	t := &out.Total
	for i, p := range w.places {
		s := &p.score
		s.endHour()
		out.Workloads = append(out.Workloads, *s)
		t.add(s)
		t.Served, t.Needed = math.Min(t.Served, s.Served), math.Min(t.Needed, s.Needed)
		if i == 0 || s.Advice == nil || t.Advice != nil && *s.Advice > *t.Advice {
			t.Advice = s.Advice
		}
	}
	return out
}

// add adds the sums of another score.
func (s *Score) add(o *Score) {
	for _, x := range [][2]*float64{
		{&s.Minutes, &o.Minutes}, {&s.Missed, &o.Missed}, {&s.LeastMissed, &o.LeastMissed}, {&s.MostMissed, &o.MostMissed},
		{&s.CoreHours, &o.CoreHours}, {&s.UsedHours, &o.UsedHours}, {&s.NeededHours, &o.NeededHours}, {&s.NeedUnknown, &o.NeedUnknown},
		{&s.Scaled, &o.Scaled}, {&s.Resized, &o.Resized}, {&s.PodDays, &o.PodDays}, {&s.Quiet, &o.Quiet}, {&s.QuietHours, &o.QuietHours},
	} {
		*x[0] += *x[1]
	}
}

// world returns a new world with the workloads in their initial state.
func (x *Replay) world() *world {
	w := &world{pool: x.Pool, from: int(x.Learn.Seconds())}
	if w.pool == 0 {
		w.pool = math.Inf(1)
	}
	from, _ := x.Bounds()
	w.begins = from
	for i := range x.Workloads {
		r := &x.Workloads[i]
		t := truth{load: r.loads(from, x.Interval), shares: r.Shares}
		if r.Predict == nil {
			t.perform, t.spread, t.queues, t.shares = r.byFormula, spread, true, true
		} else {
			t.perform = func(n int, a, rate, _ float64) trimtab.Band { return r.Predict(float64(n)*a, rate) }
		}
		if r.Load != nil {
			t.load = func(second float64) (float64, bool) { return r.Load(second), true }
		}
		p := &place{Service: &r.Service, rng: rand.New(rand.NewPCG(x.Seed, uint64(i))), truth: t, score: Score{Service: r.Name, Served: 1, Needed: 1},
			request: r.Request, sizes: r.Sizes, counts: r.Counts}
		p.start(r.Replicas)
		w.places = append(w.places, p)
	}
	return w
}

// loads returns a function for the recorded load at a second after the beginning. Each point is
// valid for its interval, and for one more if the next point is late.
func (r *Recorded) loads(from time.Time, interval time.Duration) func(second float64) (float64, bool) {
	patience := max(2*interval, 2*tick*time.Second)
	return func(second float64) (float64, bool) {
		at := from.Add(time.Duration(second * float64(time.Second)))
		i := sort.Search(len(r.Points), func(i int) bool { return r.Points[i].At.After(at) })
		if i == len(r.Points) || r.Points[i].At.Sub(at) > patience {
			return 0, false
		}
		return r.Points[i].Load, true
	}
}

func (x *Replay) policy(name string, w *world) (policy, error) {
	at := func(p *place) *Recorded {
		return &x.Workloads[slices.Index(w.places, p)]
	}
	switch name {
	case HPA:
		return &hpas{words: func(p *place) *HPAWords { return &at(p).HPA }}, nil
	case KEDA:
		return &kedas{words: func(p *place) *KEDAWords { return &at(p).KEDA }}, nil
	case VPA:
		return &vpas{words: func(p *place) *VPAWords { return &at(p).VPA }}, nil
	case EKS:
		return &percentiles{rule: autoscale.NewEKS}, nil
	case DPA:
		return &percentiles{rule: autoscale.NewDPA}, nil
	case Oracle:
		return oracle{}, nil
	}
	return newTrimtabs(w)
}
