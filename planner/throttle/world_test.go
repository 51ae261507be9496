package throttle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	cases "github.com/trimtab/trimtab/internal/trial"
)

// world is a host on which exactly one task hurts the LRA.
type world struct {
	*rand.Rand
	n, culprit int
	// harm is by how much the culprit raises the mean of the signal at an activity of
	// 1; visible: its activity goes up and down with what it does.
	harm     float64
	visible  bool
	ids      []string
	class    []Class
	progress []float64
	level    []float64 // activity
	recent   uint8
	now      time.Time
	ticks    int
	// burst is the mean length of anomalies that nobody causes, in s; 0: there are none.
	// They come every 40 s, beside the culprit's.
	burst    float64
	bursting int
	// over counts samples over the boundary since the harm began.
	over, samples int
}

// Each tick is 1 s with two samples. The signal is normal with 5% deviation, and the
// boundary at 3 of them; the harm begins at quietTicks.
const (
	boundary, noise = 1.15, 0.05
	quietTicks      = 20
)

func newWorld(seed uint64, n int) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), n: n, now: time.Unix(1000, 0)}
	w.culprit = w.IntN(n)
	w.harm = 0.2 + 0.6*w.Float64()
	w.visible = w.IntN(2) == 0
	for i := range n {
		w.ids = append(w.ids, fmt.Sprintf("task-%03d", i))
		class := Second
		if likely := 0.3; w.Float64() < likely || i == w.culprit && w.Float64() < likely {
			class = First
		}
		w.class, w.progress, w.level = append(w.class, class), append(w.progress, w.Float64()), append(w.level, w.Float64())
	}
	return w
}

// observe lets a second pass with so much left to each task, and looks.
func (w *world) observe(share func(task string) float64) *Observation {
	w.now = w.now.Add(time.Second)
	w.ticks++
	o := &Observation{Time: w.now, Mode: RP, Capacity: []float64{64, 256}, Cores: 64, Metrics: []float64{0.5}}
	effect := 0.0
	for i := range w.n {
		id := w.ids[i]
		if w.level[i] += 0.1 * w.NormFloat64(); w.IntN(20) == 0 {
			w.level[i] = w.Float64()
		}
		w.level[i] = min(max(w.level[i], 0.05), 1)
		activity := w.level[i]
		if i == w.culprit && w.ticks > quietTicks {
			does := 1.0
			if w.visible {
				does = max(0.5, activity)
			}
			effect = w.harm * does * share(id)
		}
		w.progress[i] = min(w.progress[i]+0.001*share(id), 1)
		o.Tasks = append(o.Tasks, Task{ID: id, Job: id, Class: w.class[i], Holds: []float64{1, 4},
			Progress: w.progress[i], Activity: activity * share(id), Expires: w.now.Add(time.Minute)})
	}
	if w.burst > 0 && w.bursting == 0 && w.IntN(40) == 0 {
		w.bursting = 1 + int(w.burst*w.ExpFloat64())
	}
	if w.bursting > 0 {
		effect += 0.4
		w.bursting--
	}
	l := LRA{Workload: "shop", Cores: 8}
	for k := range 2 {
		value := 1 + effect + noise*w.NormFloat64()
		w.recent = w.recent << 1 & 0x1f
		if value > boundary {
			w.recent |= 1
		}
		if w.ticks > quietTicks {
			w.samples++
			w.over += int(w.recent & 1)
		}
		ones := 0
		for b := range 5 {
			ones += int(w.recent >> b & 1)
		}
		l.Samples = append(l.Samples, Sample{Signal: "cpi", Time: w.now.Add(time.Duration(k-1) * 500 * time.Millisecond), Length: 500 * time.Millisecond,
			Value: math.Max(0, value), Boundary: boundary, Anomaly: ones >= 3})
	}
	o.LRAs = []LRA{l}
	return o
}

func (w *world) name() string { return w.ids[w.culprit] }

// result is what came of a world.
type result struct {
	// throttled are the tasks that ever were, proof is after how many samples of harm
	// the culprit was known (or all that is ever done), -1: never.
	throttled     map[string]bool
	proof         int
	wrong         int // innocent tasks found guilty
	lost          int // seconds that innocent tasks were throttled
	over, samples int
}

// play runs a world for 5 minutes of harm, with a decider that returns what is
// throttled and who is known guilty.
func play(w *world, decide func(o *Observation) (throttled map[string]bool, guilty []string)) result {
	r := result{throttled: map[string]bool{}, proof: -1}
	now := map[string]bool{}
	for range quietTicks + 300 {
		o := w.observe(func(id string) float64 {
			if now[id] {
				return 0
			}
			return 1
		})
		var guilty []string
		now, guilty = decide(o)
		for id := range now {
			r.throttled[id] = true
			if id != w.name() {
				r.lost++
			}
		}
		for _, id := range guilty {
			switch {
			case id != w.name():
				r.wrong++
			case r.proof < 0:
				r.proof = w.samples
			}
		}
	}
	r.over, r.samples = w.over, w.samples
	return r
}

func config() Config {
	return Config{Metrics: []Metric{{"cpu", 0.8}}, Resources: []Resource{{Name: "cpu", Ratio: 20}, {Name: "memory", Ratio: 20, Stock: true}}, CPU: 0, Slack: 2}
}

func proving(t testing.TB, c Config) (func(o *Observation) (map[string]bool, []string), *Policy) {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Observation) (map[string]bool, []string) {
		d := p.Decide(o)
		now, guilty := map[string]bool{}, []string(nil)
		for _, th := range d.Throttled {
			now[th.Task] = true
		}
		for _, e := range d.Events {
			if e.Kind == Guilty || e.Kind == Jointly {
				guilty = append(guilty, e.Task)
			}
		}
		return now, guilty
	}, p
}

// withoutProof throttles, while an LRA is anomalous, so many of the tasks in ROSE's
// order each second, and lets each run again after the hold.
func withoutProof(fraction float64) func(o *Observation) (map[string]bool, []string) {
	until := map[string]time.Time{}
	return func(o *Observation) (map[string]bool, []string) {
		s := o.LRAs[0].Samples
		now := map[string]bool{}
		var free []Task
		for _, t := range o.Tasks {
			if o.Time.Before(until[t.ID]) {
				now[t.ID] = true
			} else {
				free = append(free, t)
			}
		}
		if !s[len(s)-1].Anomaly || s[len(s)-1].Value <= boundary {
			return now, nil
		}
		slices.SortFunc(free, func(a, b Task) int {
			if a.Class != b.Class {
				if a.Class == First {
					return -1
				}
				return 1
			}
			if a.Progress < b.Progress {
				return -1
			}
			return 1
		})
		for _, t := range free[:min(len(free), int(math.Ceil(fraction*float64(len(o.Tasks)))))] {
			until[t.ID], now[t.ID] = o.Time.Add(30*time.Second), true
		}
		return now, nil
	}
}

// total adds up what came of many worlds.
type total struct {
	proved, samples, wrong, lost, over, all, innocent, throttled int
	accusations, falsely, proofs                                 uint64
}

func (s *total) add(w *world, r result, p *Policy) {
	s.throttled += len(r.throttled)
	for id := range r.throttled {
		if id != w.name() {
			s.innocent++
		}
	}
	if r.proof >= 0 {
		s.proved++
		s.samples += r.proof
	}
	s.wrong, s.lost, s.over, s.all = s.wrong+r.wrong, s.lost+r.lost, s.over+r.over, s.all+r.samples
	if p != nil {
		n := p.Counts()
		s.accusations, s.falsely, s.proofs = s.accusations+n.Accusations, s.falsely+n.FalseAccusations, s.proofs+n.Proofs+n.Joint
	}
}

// TestProofInAWorldWithOneGuiltyTask compares the proof with throttling all, and with
// ROSE's order without one, in 5 minutes in which one of n tasks hurts an LRA, with
// noise. In half of the worlds its activity shows.
func TestProofInAWorldWithOneGuiltyTask(t *testing.T) {
	worlds := cases.Some(15, 40)
	type decider = func(o *Observation) (map[string]bool, []string)
	for _, n := range []int{5, 20, 100} {
		sums := map[string]*total{}
		for _, name := range []string{"proof", "throttle all", "order without proof"} {
			s := &total{}
			for seed := range uint64(worlds) {
				w := newWorld(seed, n)
				var p *Policy
				decide := map[string]func() decider{
					"proof":               func() (d decider) { d, p = proving(t, config()); return d },
					"throttle all":        func() decider { return withoutProof(1) },
					"order without proof": func() decider { return withoutProof(0.1) },
				}[name]()
				s.add(w, play(w, decide), p)
			}
			sums[name] = s
			t.Logf("%3d tasks, %-19s: proved in %2d of %d worlds, after %4.1f samples; innocent of accusations %2.0f%%, of convictions %3.1f%%, of tasks ever throttled %2.0f%%; innocent task-seconds throttled %7.1f; samples over %4.1f%%",
				n, name, s.proved, worlds, float64(s.samples)/float64(max(s.proved, 1)), percent(s.falsely, s.accusations), percent(uint64(s.wrong), s.proofs),
				percent(uint64(s.innocent), uint64(s.throttled)), float64(s.lost)/float64(worlds), percent(uint64(s.over), uint64(s.all)))
		}
		proof, all, order := sums["proof"], sums["throttle all"], sums["order without proof"]
		if proof.proved < worlds*9/10 || proof.lost*5 > all.lost || proof.lost*5 > order.lost || proof.over > order.over {
			t.Errorf("%d tasks: with proof %+v, throttle all %+v, order without %+v", n, *proof, *all, *order)
		}
		if float64(proof.wrong) > 0.05*float64(proof.proofs) {
			t.Errorf("%d tasks: %d of %d convictions are wrong", n, proof.wrong, proof.proofs)
		}
	}
}

// TestTheControlClearsThoseBesideWhomAnAnomalyOnlyEnded: where an LRA is anomalous now
// and then by itself, every recovery in a trial looks like proof; with the control few
// do.
func TestTheControlClearsThoseBesideWhomAnAnomalyOnlyEnded(t *testing.T) {
	worlds := cases.Some(15, 30)
	for _, n := range []int{5, 20, 100} {
		sums := map[bool]*total{true: {}, false: {}}
		for _, control := range []bool{true, false} {
			s := sums[control]
			for seed := range uint64(worlds) {
				w := newWorld(seed, n)
				w.burst, w.harm = 4, 0 // nobody is guilty
				c := config()
				c.Proof.NoControl = !control
				decide, p := proving(t, c)
				s.add(w, play(w, decide), p)
			}
			t.Logf("%3d tasks, control %-5v: %3d innocent of %3d convictions, %5.1f task-seconds throttled, samples over %4.1f%%", n, control,
				s.proofs, s.proofs, float64(s.lost)/float64(worlds), percent(uint64(s.over), uint64(s.all)))
		}
		both := &total{}
		for seed := range uint64(worlds) {
			w := newWorld(seed, n)
			w.burst = 4 // beside one that is guilty
			decide, p := proving(t, config())
			both.add(w, play(w, decide), p)
		}
		t.Logf("%3d tasks, one guilty: %3d innocent of %3d convictions, proved in %d of %d worlds", n, both.wrong, both.proofs, both.proved, worlds)
		if both.wrong*10 > int(both.proofs) || both.proved < worlds*9/10 {
			t.Errorf("%d tasks: %+v", n, *both)
		}
		if with, without := sums[true], sums[false]; with.proofs*5 > without.proofs {
			t.Errorf("%d tasks: %d convictions with the control, %d without", n, with.proofs, without.proofs)
		}
	}
}

func percent(part, of uint64) float64 { return 100 * float64(part) / float64(max(of, 1)) }
