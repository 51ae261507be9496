package keda

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// Workload is a workload for which KEDA may ask.
type Workload struct {
	Name string
	Mode trimtab.Mode
	// Namespace is the namespace of its ScaledObject; "": any.
	Namespace string
	// Replicas says that its number of pods is planned for.
	Replicas bool
}

// maxHosts bounds the hosts whose knobs are followed.
const maxHosts = 10_000

// advice is the newest plan's advice. It is safe for concurrent use.
type advice struct {
	config *Config
	now    func() time.Time

	mu sync.Mutex
	// workloads are the declared workloads.
	workloads map[string]Workload
	// newest has the newest plan, and the number of pods of each workload: plans do not repeat
	// numbers that stay.
	newest newest.Model
}

func newAdvice(c *Config, now func() time.Time) *advice {
	a := &advice{config: c, now: now, workloads: map[string]Workload{}}
	for _, w := range c.Workloads {
		a.workloads[w.Name] = w
	}
	a.newest = newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: len(c.Workloads), Admits: a.declares}
	return a
}

func (a *advice) declares(name string) bool { _, ok := a.workloads[name]; return ok }

// observe reads one value of the bus.
func (a *advice) observe(v trimtab.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch v := v.(type) {
	case *trimtab.Plan:
		if v.Pool == a.config.Pool && !v.Cause.AnswersApply() { // the latter says what one command found
			a.newest.Observe(v, a.now())
			a.newest.Followed = a.lasts()
		}
	case *trimtab.Holding:
		if v.Pool == a.config.Pool {
			a.newest.Observe(newest.Only(v, func(k *trimtab.KnobState) bool {
				return a.declares(k.Workload) && k.Resource == trimtab.Replicas && !k.Now.Unlimited
			}), a.now())
		}
	}
}

// lasts is the age from which on the newest plan is no advice.
func (a *advice) lasts() time.Duration {
	return min(2*a.config.Round, a.newest.Plan(a.config.Pool).Value.Lease.Duration())
}

// has returns the number of pods of a workload by the newest report of it that is at most two
// rounds old, or nil.
func (a *advice) has(name string) (last *trimtab.KnobState) {
	now := a.now()
	least := 2 * a.config.Round
	for _, h := range a.newest.On(name) {
		if age := now.Sub(newest.ReportedAt(h.Time, h.Arrived, 0)); age <= least {
			least, last = age, &h.Of(name)[0]
		}
	}
	return last
}

// maxTarget is the most that one pod may count for.
const maxTarget = 1e6

// find returns the workload of a request, and the metric's target per pod.
func (a *advice) find(r *request) (w Workload, target float64, err error) {
	if r.fault != nil {
		return w, 0, status.Error(codes.InvalidArgument, r.fault.Error())
	}
	name := r.metadata["workload"]
	if name == "" {
		return w, 0, status.Error(codes.InvalidArgument, "the trigger names no workload: write workload: NAME into its metadata")
	}
	a.mu.Lock()
	w, ok := a.workloads[name]
	a.mu.Unlock()
	pool := r.metadata["pool"]
	switch {
	case !ok:
		return w, 0, status.Errorf(codes.NotFound, "no workload %.100q in trimtab's configuration", name)
	case pool != "" && pool != a.config.Pool:
		return w, 0, status.Errorf(codes.NotFound, "no pool %.100q here: this is %q", pool, a.config.Pool)
	case w.Namespace != "" && r.namespace != w.Namespace:
		return w, 0, status.Errorf(codes.NotFound, "workload %q is of namespace %s, and the ScaledObject of %.100q", name, w.Namespace, r.namespace)
	case w.Mode == trimtab.Off:
		return w, 0, status.Errorf(codes.FailedPrecondition, "workload %q is in mode off", name)
	case !w.Replicas:
		return w, 0, status.Errorf(codes.FailedPrecondition, "workload %q has no bounds for replicas: write knob: {resources: {replicas: {min: 1, max: 20}}}", name)
	}
	target = 1
	if s, ok := r.metadata["targetSize"]; ok {
		target, err = strconv.ParseFloat(s, 64)
		if err != nil || !(target > 0 && target <= maxTarget) {
			return w, 0, status.Errorf(codes.InvalidArgument, "targetSize %.100q of the trigger: want a number over 0, at most %v", s, maxTarget)
		}
	}
	return w, target, nil
}

// replicas returns how many pods the workload should have, at least 1. The error says
// why there is no fresh advice.
func (a *advice) replicas(name string) (float64, error) {
	n, why := a.fresh(name)
	if why != "" {
		return 0, status.Errorf(codes.Unavailable, "no advice for %q: %.300s", name, why)
	}
	return n, nil
}

func (a *advice) fresh(name string) (n float64, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	plan := a.newest.Plan(a.config.Pool)
	if plan.Value == nil {
		return 0, "no plan was made yet"
	}
	if age := plan.Age(a.now()); age >= a.lasts() {
		return 0, fmt.Sprintf("the newest plan is out of date since %v", (age - a.lasts()).Round(time.Second))
	}
	at := newest.PositionOf(plan.Value)
	if c := a.newest.Choice(name, trimtab.Replicas); c != nil && c.Position == at && !c.Set.Unlimited {
		n = c.Set.Value
	} else if w := a.newest.Of(name); w != nil && w.HeldIn == at && w.Held != "" {
		return 0, w.Held
	} else if has := a.has(name); has == nil {
		return 0, "how many pods there are is not known"
	} else if has.Problem != "" {
		return 0, has.Problem
	} else {
		n = has.Now.Value
	}
	if n = math.Round(n); !(n >= 1) || n > math.MaxInt32 {
		return 0, fmt.Sprintf("%v pods are no number of pods to advise", n)
	}
	return n, ""
}
