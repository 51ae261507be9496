package fast

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/baseline/quota"
	"github.com/trimtab/trimtab/sim"
)

// Experiment plays policies beside each other, on each load with each seed.
type Experiment struct {
	lab.Frame
	Run   []string
	Loads []string
	// Own are further loads; their names are not those of built-in ones.
	Own     []Load
	Seconds int
	// Pool is what the hosts have together, in cores.
	Pool float64

	bandits map[bandit]*quota.Tower
}

// Cell is one policy on one load with one seed.
type Cell struct {
	Policy string
	Burst  bool
	Load   string
	Steps  bool
	Seed   uint64
	// Knob is the cheapest that holds the SLO, or the safest where none does.
	Knob float64
	Result
	// Tick is the mean time of a tick of a host, Longest the longest; of fast alone.
	Tick, Longest time.Duration
}

// Name is the policy, with +burst.
func (c *Cell) Name() string { return named(c.Policy, c.Burst) }

func named(policy string, burst bool) string {
	if burst {
		return policy + "+burst"
	}
	return policy
}

// Answer is what came of all.
type Answer struct {
	// Cells are the runs of each load, with the best knob in hindsight.
	Cells []Cell
	// Unforeseen are steps under the knobs of the load diurnal.
	Unforeseen []Cell
	// Pools are the least pools of three applications, over what they use, by policy and
	// seed: fast, fast+burst, weights.
	Pools []Pooled
	// Highest sum of the quotas of captain for the same three applications.
	Captain []float64
	// Learnt has an entry per seed where fast was played for half an hour or more.
	Learnt []Learnt
}

// Pooled is the least pool for three applications.
type Pooled struct {
	Policy string
	Burst  bool
	Seed   uint64
	Least  float64
	Result
}

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Experiment) Validate() error {
	if x.Seconds < 120 || x.Seconds > 86_400 || x.Seeds < 1 || x.Seeds > 10_000 || !(x.Pool >= 1 && x.Pool <= hosts*hostCPUs) {
		return trimtab.Invalidf("simulation: %d s, %d seeds, %v cores: want 120 to 86400 s and at most %v cores", x.Seconds, x.Seeds, x.Pool, hosts*hostCPUs)
	}
	if err := sim.Known("policy", x.Run, PolicyNames()); err != nil {
		return err
	}
	for _, name := range x.Loads {
		if _, err := Named(name, 1, 1); err != nil {
			return err
		}
	}
	return nil
}

// HasKnob reports whether a policy has a setting that is searched in hindsight.
func HasKnob(policy string) bool { return len(knobs(policy)) > 0 }

// Runs is how often Done is called.
func (x *Experiment) Runs() int { return x.Seeds * len(x.jobs()) }

// job is one load, the three applications, or the learner.
type job struct {
	load        string
	own         *Load
	pool, learn bool
}

func (x *Experiment) jobs() (out []job) {
	for _, l := range x.Loads {
		out = append(out, job{load: l})
	}
	for i := range x.Own {
		out = append(out, job{load: x.Own[i].Name, own: &x.Own[i]})
	}
	out = append(out, job{pool: true})
	if slices.Contains(x.Run, Fast) && x.Seconds >= leastLearning {
		out = append(out, job{learn: true})
	}
	return out
}

// Play runs all of it. One that was stopped returns what was finished, beside the error.
func (x *Experiment) Play() (*Answer, error) {
	if err := x.Validate(); err != nil {
		return nil, err
	}
	x.train()
	if x.Stopped() {
		return nil, fmt.Errorf("train policies: %w", sim.ErrStopped)
	}
	jobs := x.jobs()
	parts, done := make([]Answer, len(jobs)*x.Seeds), make([]bool, len(jobs)*x.Seeds)
	_, err := x.Frame.Play(len(jobs), func(row, k int) error {
		j, seed, i := jobs[row], x.First+uint64(k), row*x.Seeds+k
		switch {
		case j.pool:
			parts[i].Pools, parts[i].Captain = x.pools(seed)
		case j.learn:
			parts[i].Learnt = x.learn(seed)
		default:
			parts[i].Cells, parts[i].Unforeseen = x.load(j, seed)
		}
		done[i] = !x.Stopped()
		return nil
	})
	if err != nil && !slices.Contains(done, true) {
		return nil, err
	}
	out := &Answer{}
	for i := range parts {
		if !done[i] {
			continue // it was stopped
		}
		out.Cells = append(out.Cells, parts[i].Cells...)
		out.Unforeseen = append(out.Unforeseen, parts[i].Unforeseen...)
		out.Pools = append(out.Pools, parts[i].Pools...)
		out.Captain = append(out.Captain, parts[i].Captain...)
		out.Learnt = append(out.Learnt, parts[i].Learnt...)
	}
	return out, err
}

// app is the application of a job.
func (x *Experiment) app(j job, seed uint64) *App {
	l := j.own
	if l == nil {
		l, _ = Named(j.load, x.Seconds, seed) // the name was checked
	}
	return NewApp(l, seed)
}

// load plays all policies on one load; those of diurnal also on steps that they were
// not told of.
func (x *Experiment) load(j job, seed uint64) (cells, unforeseen []Cell) {
	a := x.app(j, seed)
	for _, name := range x.Run {
		for _, burst := range []bool{false, true} {
			if burst && !bursts(name) {
				continue
			}
			c := Cell{Policy: name, Burst: burst, Load: j.load, Steps: a.Load.Steps, Seed: seed}
			x.cheapest(&c, a)
			if x.Stopped() {
				return nil, nil
			}
			cells = append(cells, c)
		}
	}
	if j.load != Diurnal || j.own != nil {
		return cells, nil
	}
	steps := x.app(job{load: Steps}, seed+1_000_000) // steps elsewhere
	for _, c := range cells {
		if c.Policy == Weights || c.Policy == Oracle {
			continue
		}
		u := Cell{Policy: c.Policy, Burst: c.Burst, Load: "unforeseen", Steps: true, Seed: seed, Knob: c.Knob}
		x.run(&u, steps, c.Knob)
		unforeseen = append(unforeseen, u)
	}
	return cells, unforeseen
}

// run plays one policy with one knob.
func (x *Experiment) run(c *Cell, a *App, knob float64) {
	cl := newCluster([]*App{a}, x.Pool, c.Burst, c.Seed)
	p := x.newPolicy(c.Policy, knob, cl, c.Seed)
	r := cl.play(p, x.Stop)
	if r == nil {
		return
	}
	c.Result, c.Knob = *r, knob
	if f, ok := p.(*fast); ok && f.ticks > 0 {
		c.Tick, c.Longest = f.spent/time.Duration(f.ticks), f.longest
	}
}

// cheapest searches the last knob, the safest first, that keeps the SLO, by bisection.
func (x *Experiment) cheapest(c *Cell, a *App) {
	ks := knobs(c.Policy)
	if len(ks) == 0 {
		x.run(c, a, 0)
		return
	}
	if c.Policy == Captain { // its cost is not monotone in the target
		x.cheapestOfAll(c, a, ks)
		return
	}
	safest, found := ks[0], false
	for len(ks) > 0 && !x.Stopped() {
		mid := (len(ks) - 1) / 2
		try := *c
		if x.run(&try, a, ks[mid]); try.Holds() {
			*c, found, ks = try, true, ks[mid+1:]
		} else {
			ks = ks[:mid]
		}
	}
	if !found {
		x.run(c, a, safest)
	}
}

func (x *Experiment) cheapestOfAll(c *Cell, a *App, ks []float64) {
	found := false
	for i, k := range ks {
		try := *c
		if x.run(&try, a, k); i == 0 || try.Holds() && (!found || try.Cores < c.Cores) {
			*c, found = try, try.Holds()
		}
		if x.Stopped() {
			return
		}
	}
}

// Training of the tower: half of it uniform, half with much exploration.
const (
	trainHours   = 12
	trainExplore = 0.5
)

// bandit says whose training it was.
type bandit struct {
	seed  uint64
	burst bool
}

// train lets a tower of each seed learn, without and with burst.
func (x *Experiment) train() {
	if !slices.Contains(x.Run, Tower) {
		return
	}
	trained := make([]*quota.Tower, 2*x.Seeds)
	x.Each(len(trained), func(i int) {
		trained[i] = x.trained(bandit{x.First + uint64(i/2), i%2 == 1})
	})
	x.bandits = map[bandit]*quota.Tower{}
	for i, t := range trained {
		x.bandits[bandit{x.First + uint64(i/2), i%2 == 1}] = t
	}
}

// trained is a tower after its training on the load for tuning.
func (x *Experiment) trained(of bandit) *quota.Tower {
	t := newBandit(of.seed)
	for part := range trainHours {
		l, _ := Named(Tuning, x.Seconds, of.seed) // it is built in
		cl := newCluster([]*App{NewApp(l, of.seed+uint64(part)+77)}, x.Pool, of.burst, of.seed)
		p := newTower(cl, t)
		p.uniform, p.explore = part < trainHours/2, trainExplore
		if cl.play(p, x.Stop) == nil {
			break
		}
	}
	return t
}

// pools finds the least pools for three applications.
func (x *Experiment) pools(seed uint64) (out []Pooled, captain []float64) {
	var apps []*App
	used := 0.0
	for i, name := range []string{Bursty, Noisy, Steps} {
		a := x.app(job{load: name}, seed+uint64(i)+2)
		apps, used = append(apps, a), used+a.Used
	}
	for _, name := range []string{Fast, Weights} {
		if !slices.Contains(x.Run, name) {
			continue
		}
		for _, burst := range []bool{false, true} {
			if burst && !bursts(name) {
				continue
			}
			out = append(out, x.least(name, burst, seed, apps, used))
		}
	}
	if slices.Contains(x.Run, Captain) {
		captain = append(captain, x.captains(seed, apps, used))
	}
	return out, captain
}

const leastPool, pools = 1.1, 30

// least is the least pool that holds, in tenths of the use.
func (x *Experiment) least(name string, burst bool, seed uint64, apps []*App, used float64) Pooled {
	best := Pooled{Policy: name, Burst: burst, Seed: seed, Least: leastPool + 0.1*pools}
	for lo, hi := 0, pools-1; lo <= hi && !x.Stopped(); {
		mid := (lo + hi) / 2
		times := leastPool + 0.1*float64(mid)
		cl := newCluster(apps, times*used, burst, seed)
		r := cl.play(x.newPolicy(name, 0, cl, seed), x.Stop)
		if r == nil {
			break
		}
		if r.Holds() {
			best.Least, best.Result, hi = times, *r, mid-1
		} else {
			lo = mid + 1
		}
	}
	return best
}

// captains is the highest sum of quotas that captains with burst, each application with
// its best target, come to together.
func (x *Experiment) captains(seed uint64, apps []*App, used float64) float64 {
	sum := 0.0
	for _, a := range apps {
		c := Cell{Policy: Captain, Burst: true, Load: a.Load.Name, Seed: seed}
		x.cheapest(&c, a)
		sum += c.Highest * a.Used
	}
	return sum / used
}
