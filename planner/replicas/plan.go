package replicas

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/behavior"
)

const (
	// fill is the fraction of their largest size that the remaining instances may be used to when
	// the number falls. The rest is reserved for a rise of the load that needs no new instance.
	fill = 0.95
	// grain is the tolerance for rounding errors.
	grain = 1e-9
	// afterReady is how much longer than usual an instance may take to start before it is removed
	// again. giveUp is for how long no other is started after that.
	afterReady, giveUp = 60 * time.Second, 5 * time.Minute
)

// Code is a kind of reason why a knob does not get the wanted value.
type Code string

// The reasons why a knob does not get the wanted value.
const (
	Missing    Code = "missing"
	RolledOut  Code = "rollout"
	Owned      Code = "owned"
	Disrupts   Code = "disruption budget"
	Behaves    Code = "behavior"
	NoHeadroom Code = "room"
	Quota      Code = "quota"
	Bounds     Code = "bounds"
	Waits      Code = "waits"
	Stuck      Code = "stuck"
	Unready    Code = "not ready"
)

// Held is the reason why a knob does not get the wanted value.
type Held struct {
	Resource string
	Code     Code
	Text     string
}

// Decision is the size and number for one workload.
type Decision struct {
	// Sizes are the new sizes of the instances, in order of [Workload.Instances], and Replicas the
	// new number. The sizes are set first: remaining instances grow before others are removed. Size
	// is the size of new instances.
	Sizes    []float64
	Size     float64
	Replicas int
	// Advised would be best, ignoring other owners of the knobs, stabilization windows and rate
	// limits.
	Advised Advice
	Held    []Held
}

// Binding returns what kept the number from the wanted one. quota is the name of the cluster's
// quota, "" if there is none.
func (d *Decision) Binding(quota string) trimtab.Binding {
	for _, h := range d.Held {
		if h.Resource != trimtab.Replicas {
			continue
		}
		switch h.Code {
		case Behaves, Disrupts, RolledOut, Stuck:
			return trimtab.Binding{Kind: codes.BindingGuard, Detail: string(h.Code)}
		case Quota:
			if quota != "" {
				return trimtab.Binding{Kind: codes.BindingMax, Detail: quota}
			}
		case NoHeadroom:
			return trimtab.Binding{Kind: codes.BindingCapacity, Detail: h.Text}
		case Bounds:
			return trimtab.Binding{Kind: codes.BindingMax}
		}
	}
	return trimtab.Binding{Kind: codes.BindingNeed}
}

// Advice is a size and a number.
type Advice struct {
	Size     float64
	Replicas int
}

// view has the inputs of a decision, computed once per round.
type view struct {
	*Workload
	n, ready int
	// The smallest current size, the largest size that every instance can grow to in place, the
	// free amount, and all that it can have.
	size, most, spare, total float64
	held                     []float64 // amounts of the instances that serve or will serve
	stuck                    int
	slack                    Slack
	out                      *Decision
}

// Decide returns size and number for the coming round. The workload must be valid. Decide updates
// the state, but does not record the change of the number: the caller does that once it is written.
// It subtracts from room what the decision adds.
func (w *Workload) Decide(now time.Time, s *State, room *Headroom) Decision {
	v := w.look(s, room)
	if !v.known() {
		v.absent(now, s)
		return *v.out
	}
	s.Failures = 0
	if done := v.zero(now, s); done {
		return *v.out
	}
	v.out.Advised = v.advise()
	wanted := v.count(now, s)
	v.out.Replicas = v.steer(now, s, wanted)
	v.resize(now, s)
	w.subtract(room, v.out)
	return *v.out
}

// look computes the view of a round.
func (w *Workload) look(s *State, room *Headroom) *view {
	v := &view{Workload: w, n: w.Replicas, size: math.Inf(1), slack: s.Slack, out: &Decision{Replicas: w.Replicas}}
	on := map[string][]float64{}
	startup := s.Startup.Upper()
	for i := range w.Instances {
		in := &w.Instances[i]
		v.out.Sizes = append(v.out.Sizes, in.Asked)
		if in.Terminating {
			continue
		}
		v.held = append(v.held, in.held())
		on[in.Host] = append(on[in.Host], in.held())
		v.size = math.Min(v.size, in.held())
		switch {
		case in.Ready:
			v.ready++
		case in.Age > startup+afterReady:
			v.stuck++
		}
	}
	if math.IsInf(v.size, 1) {
		v.size = w.Size.Min
	}
	v.out.Size = v.size
	v.spare, v.most = w.spare(room), w.Size.Max
	v.total = v.spare
	for _, a := range v.held {
		v.total += a
	}
	for host, held := range on {
		if room.Hosts != nil {
			v.most = math.Min(v.most, level(held, math.Max(room.Hosts[host], 0)))
		}
	}
	if w.Size.Fixed || w.Size.ReadOnly != "" {
		v.most = v.size
	}
	return v
}

// level returns the size to which all instances can grow with the free amount, if none shrinks: Σ
// max(0, level − held) = free.
func level(held []float64, free float64) float64 {
	sorted, sum := slices.Sorted(slices.Values(held)), 0.0
	for k, a := range sorted {
		if k > 0 && a*float64(k)-sum >= free {
			return (sum + free) / float64(k)
		}
		sum += a
	}
	return (sum + free) / float64(max(len(sorted), 1))
}

// spare returns how much of the resource pool and quota leave.
func (w *Workload) spare(room *Headroom) float64 {
	free := room.Pool
	if q := w.Limits.Amount; q != nil {
		free = math.Min(free, *q)
	}
	if !(free > 0) {
		return 0
	}
	return free
}

func (v *view) hold(resource string, code Code, text string, args ...any) {
	v.out.Held = append(v.out.Held, Held{resource, code, fmt.Sprintf(text, args...)})
}

// known reports whether the need is known and a valid number.
func (v *view) known() bool {
	if v.Missing == "" && (!sane(v.Need.Round) || !sane(v.Need.Start)) {
		v.Missing = "the need is no number"
	}
	return v.Missing == ""
}

// absent keeps the number of instances, or raises it to a declared fallback.
func (v *view) absent(now time.Time, s *State) {
	s.Failures++
	v.hold("replicas", Missing, "%s: nothing is lowered", v.Missing)
	v.out.Advised = Advice{v.size, v.n}
	more := min(v.Fallback.replicas(v.n, s.Failures), v.Count.Max)
	if more > v.n && !v.readOnly() && now.After(s.Retry) {
		v.out.Replicas = min(more, v.bounds().Max)
	}
}

func (v *view) readOnly() bool { return v.Count.Fixed || v.Count.ReadOnly != "" }

// zero scales to zero and back, if that is allowed. As in KEDA, the rules of the behavior block do
// not apply to that. It reports whether the decision is complete.
func (v *view) zero(now time.Time, s *State) bool {
	needed := v.Need.Round > 0 || v.Need.Start > 0
	if v.n > 0 {
		if !v.Count.AllowZero || needed || v.readOnly() || v.Rollout || v.disruptable() < v.n {
			return false
		}
		v.out.Replicas, v.out.Advised = 0, Advice{v.size, 0}
		return true
	}
	v.out.Advised = Advice{v.Size.Min, 0}
	if !needed {
		return true
	}
	v.out.Advised = v.advise()
	if !v.Count.AllowZero {
		v.hold("replicas", Owned, "somebody set 0 replicas")
		return true
	}
	if !v.readOnly() && !now.Before(s.Retry) {
		v.out.Replicas = min(max(v.out.Advised.Replicas, 1), v.bounds().Max)
	}
	v.out.Size = v.stepped(v.Need.Round/float64(max(v.out.Replicas, 1)), v.Size.Max)
	return true
}

// advise returns the best size and number for the need, ignoring other owners, windows and rate
// limits.
func (v *view) advise() Advice {
	n := v.fewest(v.Size.Max, 1)
	if v.Count.Fixed {
		n = v.n
	}
	n = min(max(n, v.Count.Min, 1), v.Count.Max)
	if v.Size.Fixed {
		return Advice{v.size, n}
	}
	return Advice{v.stepped(v.Need.Round/float64(n), v.Size.Max), n}
}

// fewest returns the least number of instances that serve until more could have started, if each
// may have at most size and is used up to the fraction part of that.
func (v *view) fewest(size, part float64) int {
	need := math.Max(v.Need.Round, v.Need.Start)
	n := math.Max(math.Ceil(need/(size*part)-grain), v.slack.fewest(v.Work, size*part))
	return int(math.Min(n, math.MaxInt32/2)) + v.Count.Spare
}

// count returns the wanted number of instances: the current one, as long as changing sizes
// suffices.
func (v *view) count(now time.Time, s *State) int {
	if v.readOnly() {
		return v.n
	}
	if v.stuck > 0 {
		v.hold("replicas", Stuck, "%d of %d instances did not start: given back", v.stuck, v.n)
		s.Retry = now.Add(giveUp)
		return max(v.n-v.stuck, v.ready, 1)
	}
	part := fill
	if v.Size.Fixed || v.Size.ReadOnly != "" {
		part = 1 // sizes cannot rise, so no reserve for that is needed
	}
	most := math.Max(v.most, v.Size.Min)
	least := v.fewest(most, 1)
	if all := v.total / most; float64(least-v.Count.Spare) > all && !math.IsInf(all, 1) {
		// More instances than fit would only be smaller ones.
		least = max(int(all+grain), min(v.n, least))
		v.hold("replicas", NoHeadroom, "pool and quota leave %.4g in all", v.total)
	}
	if least > v.n {
		if now.Before(s.Retry) {
			v.hold("replicas", Stuck, "instances did not start: none are asked for until %s", s.Retry.UTC().Format(time.TimeOnly))
			return v.n
		}
		return least
	}
	return min(max(v.fewest(most, part), 1), v.n)
}

// bounds returns the limits of the number from the configuration and the quota.
func (v *view) bounds() behavior.Bounds {
	in := behavior.Bounds{Min: max(v.Count.Min, 1), Max: v.Count.Max}
	if v.Limits.Pods != nil {
		in.Max = max(min(in.Max, v.n+max(*v.Limits.Pods, 0)), min(v.n, v.Count.Max))
	}
	in.Min = min(in.Min, in.Max)
	return in
}

// disruptable returns how many instances may be removed now, by the disruption budgets.
func (v *view) disruptable() int {
	if may := v.Limits.Disruptable; may != nil {
		return min(v.n, max(*may, 0))
	}
	return v.n
}

// steer applies owners, rates and windows to a wanted number, and returns the number to set.
func (v *view) steer(now time.Time, s *State, wanted int) int {
	switch {
	case v.Count.ReadOnly != "":
		v.hold("replicas", Owned, "owned by %s", v.Count.ReadOnly)
		return v.n
	case v.Count.Fixed:
		return v.n
	}
	in := v.bounds()
	d := s.Count.Step(now, v.Count.Behavior, in, v.n, wanted)
	if d.Replicas != wanted {
		code := Behaves
		if d.Reason == behavior.TooMany && in.Max < v.Count.Max {
			code = Quota
		} else if d.Reason == behavior.TooMany || d.Reason == behavior.TooFew {
			code = Bounds
		}
		v.hold("replicas", code, "%d wanted, %d set: %s", wanted, d.Replicas, d.Reason)
	}
	if d.Replicas < v.n {
		return v.lower(d.Replicas)
	}
	return d.Replicas
}

// lower returns down to which number it may fall in this step.
func (v *view) lower(to int) int {
	if v.Rollout {
		v.hold("replicas", RolledOut, "a rollout runs: nothing is lowered")
		return v.n
	}
	if can := v.disruptable(); v.n-to > can {
		v.hold("replicas", Disrupts, "%d may go now, not %d", can, v.n-to)
		to = v.n - can
	}
	if gone := v.n - to; v.ready-gone < 1 || float64(v.ready-gone)*v.most < v.Need.Round-grain {
		// Instances that are not ready usually go first, but the cluster decides that. So count on
		// losing ready ones.
		for to < v.n && (v.ready-(v.n-to) < 1 || float64(v.ready-(v.n-to))*v.most < v.Need.Round-grain) && v.stuck == 0 {
			to++
		}
		if to == v.n {
			v.hold("replicas", Unready, "%d of %d serve: none may go", v.ready, v.n)
		}
	}
	// All remaining instances must be able to grow before others go.
	for ; to < v.n && v.stuck == 0; to++ {
		if v.carried(to) <= level(v.held, v.spare)+grain {
			break
		}
	}
	if to == v.n && len(v.out.Held) == 0 {
		v.hold("replicas", NoHeadroom, "no room to grow those that stay before others go")
	}
	return to
}

// carried returns the size at which n instances carry the need.
func (v *view) carried(n int) float64 {
	serve := min(v.ready, n)
	if v.n > n { // it is unknown which ones go: assume ready ones
		serve = v.ready - (v.n - n)
	}
	if v.ready == 0 {
		serve = n
	}
	serve = max(serve, 1)
	return v.stepped(math.Max(v.Need.Round, v.slack.in(v.Work, serve))/float64(serve), v.most)
}

// resize sets the sizes of the instances.
func (v *view) resize(now time.Time, s *State) {
	if v.Size.ReadOnly != "" {
		v.hold("size", Owned, "owned by %s", v.Size.ReadOnly)
	}
	if v.Size.Fixed || v.Size.ReadOnly != "" || v.n == 0 {
		return
	}
	size := v.carried(v.out.Replicas)
	if v.Granted > 0 && v.out.Replicas >= v.n {
		size = v.stepped(v.Granted/float64(max(v.ready, 1)), v.most)
	}
	come := make([]float64, max(v.out.Replicas-len(v.held), 0))
	if room := level(append(come, v.held...), v.spare); size > room {
		v.hold("size", NoHeadroom, "pool and quota leave %.4g each", room)
		size = math.Max(v.down(room), v.Size.Min)
		v.most = math.Min(v.most, room)
	}
	if v.Size.Behavior != nil {
		size = v.behaved(now, s, size)
	}
	v.out.Size = size
	falls := !v.Rollout && v.out.Replicas >= v.n // lower either the number or the sizes in one round
	for i := range v.Instances {
		in := &v.Instances[i]
		if in.Terminating || size > in.held() && size > v.most+grain {
			continue // if not even the least size fits
		}
		if size > in.Asked || falls {
			v.out.Sizes[i] = size
		}
	}
	if !falls && size < v.size && v.out.Replicas >= v.n {
		v.hold("size", Waits, "a rollout: %.4g wanted", size)
	}
}

// behaved applies the size's behavior block to a size, in steps.
func (v *view) behaved(now time.Time, s *State, size float64) float64 {
	step := v.Size.Step
	steps := func(a float64) int { return int(math.Min(math.Ceil(a/step-grain), math.MaxInt32)) }
	in := behavior.Bounds{Min: steps(v.Size.Min), Max: max(steps(v.Size.Max), steps(v.Size.Min))}
	d := s.Size.Step(now, v.Size.Behavior, in, steps(v.size), steps(size))
	s.Size.Changed(now, v.Size.Behavior, steps(v.size), d.Replicas)
	if d.Replicas == steps(size) {
		return size
	}
	v.hold("size", Behaves, "%.4g wanted: %s", size, d.Reason)
	return float64(d.Replicas) * step
}

// stepped rounds a size up to the step, within the bounds.
func (v *view) stepped(size, most float64) float64 {
	up := math.Ceil(size/v.Size.Step-grain) * v.Size.Step
	if up > most {
		up = v.down(most)
	}
	return math.Min(math.Max(up, v.Size.Min), math.Max(v.Size.Max, v.Size.Min))
}

func (v *view) down(size float64) float64 { return math.Floor(size/v.Size.Step+grain) * v.Size.Step }

// subtract subtracts what the decision adds from room.
func (w *Workload) subtract(room *Headroom, d *Decision) {
	serving := 0
	for i := range w.Instances {
		in := &w.Instances[i]
		if !in.Terminating {
			serving++
		}
		if more := d.Sizes[i] - in.held(); more > 0 {
			room.Pool -= more
			if room.Hosts != nil {
				room.Hosts[in.Host] -= more
			}
		}
	}
	room.Pool -= float64(max(d.Replicas-serving, 0)) * d.Size
}

// Upper returns an upper bound of the time that a start takes, for the horizon of [NeedOf]: see
// [Startup.Upper].
func (w *Workload) Upper(s *State) time.Duration {
	var starting []time.Duration
	for i := range w.Instances {
		if in := &w.Instances[i]; !in.Ready && !in.Terminating && in.Age <= s.Startup.Upper()+afterReady {
			starting = append(starting, in.Age)
		}
	}
	return s.Startup.Upper(starting...)
}
