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

// pods is the number of pods of a workload.
type pods struct {
	number  float64
	at      time.Time
	problem string
}

// advice is the newest plan's advice. It is safe for concurrent use.
type advice struct {
	config *Config
	now    func() time.Time

	mu sync.Mutex
	// workloads are the declared workloads.
	workloads map[string]Workload
	// newest is the plan that wanted and held are of; until is when its advice is stale.
	newest newest.Position
	until  time.Time
	wanted map[string]float64
	held   map[string]string
	// has is the last number of each workload; plans do not repeat numbers that stay.
	has map[string]pods
}

func newAdvice(c *Config, now func() time.Time) *advice {
	a := &advice{config: c, now: now, workloads: map[string]Workload{}, has: map[string]pods{}}
	for _, w := range c.Workloads {
		a.workloads[w.Name] = w
	}
	return a
}

// observe reads one value of the bus.
func (a *advice) observe(v trimtab.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch v := v.(type) {
	case *trimtab.Plan:
		a.plan(v)
	case *trimtab.Holding:
		a.holding(v)
	}
}

// plan reads a plan, or a later step of the newest one.
func (a *advice) plan(p *trimtab.Plan) {
	if p.Pool != a.config.Pool || p.Cause.AnswersApply() {
		return // the latter says what one command found, and nothing of other workloads
	}
	now, at := a.now(), newest.PositionOf(p)
	switch order := at.Compare(a.newest); {
	case order < 0 && now.Before(a.until):
		return // the leader lost its term, or the plan is late
	case order != 0:
		a.newest, a.wanted, a.held = at, map[string]float64{}, map[string]string{}
	}
	born := p.Time
	if born.After(now) {
		born = now // the clock of the planner is ahead: its plan is at most as old as its arrival here
	}
	a.until = born.Add(min(2*a.config.Round, time.Duration(float64(p.Lease)*float64(time.Second))))
	for i := range p.Actions {
		if x := &p.Actions[i]; x.Resource == trimtab.Replicas && !x.Set.Unlimited {
			a.wanted[x.Workload] = x.Set.Value
		}
	}
	for name, h := range p.Held {
		a.held[name] = h.Text
	}
}

// holding reads how many pods the declared workloads have.
func (a *advice) holding(h *trimtab.Holding) {
	if h.Pool != a.config.Pool {
		return
	}
	at := h.Time
	if now := a.now(); at.After(now) {
		at = now
	}
	for i := range h.Targets {
		k := &h.Targets[i]
		if _, ok := a.workloads[k.Workload]; ok && k.Resource == trimtab.Replicas && !k.Now.Unlimited && !at.Before(a.has[k.Workload].at) {
			a.has[k.Workload] = pods{k.Now.Value, at, k.Problem}
		}
	}
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
	now := a.now()
	switch {
	case a.until.IsZero():
		return 0, "no plan was made yet"
	case !now.Before(a.until):
		return 0, fmt.Sprintf("the newest plan is out of date since %v", now.Sub(a.until).Round(time.Second))
	}
	n, moves := a.wanted[name]
	if !moves {
		if why := a.held[name]; why != "" {
			return 0, why
		}
		has, ok := a.has[name]
		switch {
		case !ok, now.Sub(has.at) > 2*a.config.Round:
			return 0, "how many pods there are is not known"
		case has.problem != "":
			return 0, has.problem
		}
		n = has.number
	}
	if n = math.Round(n); !(n >= 1) || n > math.MaxInt32 {
		return 0, fmt.Sprintf("%v pods are no number of pods to advise", n)
	}
	return n, ""
}
