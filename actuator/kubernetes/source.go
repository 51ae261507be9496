package kubernetes

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// Cluster gives access to the cluster of the knobs.
type Cluster struct {
	// Config identifies the cluster; it is journaled, so that a restore finds it again.
	Config kube.Config
	// Watched returns the watched objects. Its error says why there are none yet.
	Watched func() (*kube.Cluster, error)
	// Rules returns the configured options of a workload; it may be nil.
	Rules func(kube.Ref) Options
	// WorkingSet returns how many bytes of memory a container uses, as of a reading that is fresh; nil,
	// or false: that is not known, and its memory is not lowered.
	WorkingSet func(p *kube.Pod, container string) (float64, bool)

	policies *policies
}

// Options are the settings of one workload, except its bounds.
type Options struct {
	// Weighs says that CPU is shared by weight: trimtab sets the request, except of Guaranteed
	// pods, and keeps a limit.
	Weighs bool
	// AddLimits allows adding a limit to a container without one. It cannot be removed again: a
	// restore sets what its node has.
	AddLimits bool
	// Follow says that the request of a Burstable pod follows its limit, in the ratio of the template.
	Follow bool
	// AllowZero lets the number of pods go to 0 and come back from it.
	AllowZero bool
	// StartValues says that new pods start with the present values of the other pods instead of
	// those of their template. A limit is then restored to the template's value, and one more pod
	// takes as much as the others have.
	StartValues bool
	// RestoreBaseline allows a restore to lower the number of pods, as far as disruption budgets
	// allow.
	RestoreBaseline bool
	// TakeOver lists field managers whose values trimtab may change; see [kube.Meta.HeldBy].
	TakeOver []string
	// DeferFor is how long a kubelet may defer a resize before trimtab takes it back; 0: a minute.
	DeferFor time.Duration
}

func (c *Cluster) rules(r kube.Ref) Options {
	if c.Rules == nil {
		return Options{}
	}
	return c.Rules(r)
}

// watched returns the watched objects, or the error of ctx if that has ended.
func (c *Cluster) watched(ctx context.Context) (*kube.Cluster, error) {
	w, err := c.Watched()
	if err == nil {
		err = ctx.Err()
	}
	return w, err
}

// facts reads the cluster for a knob. It has two implementations: kept reads the watches, and
// asked, for a restore that has only the journal, sends requests to the server.
type facts interface {
	pod(ctx context.Context, at *location) (*kube.Pod, error)
	workload(ctx context.Context, r kube.Ref) (*kube.Workload, error)
	client() (*kube.Client, error)
	// policies returns what kubelets reported of their nodes; nil: it is not recorded.
	policies() *policies
	// took records the server's answer to a write of a pod whose generation was before. own returns
	// how many generations of a pod such writes caused.
	took(p *kube.Pod, before int64)
	own(uid string) int64
	// watched returns the watched cluster; nil: only the object itself is known.
	watched() (*kube.Cluster, error)
	// workingSet returns how many bytes of memory a container uses; false: it is not known.
	workingSet(p *kube.Pod, container string) (float64, bool)
	// allocatable returns a node's capacity for pods.
	allocatable(node, resource string) (float64, error)
	// pace returns the rate limit for writes and the reads that they need, in requests a second.
	pace() float64
	// spared returns how many pods disruption budgets allow to remove; see [kube.Cluster.Spared].
	spared(ctx context.Context, w *kube.Workload) (atOnce, least int64, by string, err error)
}

// kept implements facts with the watches.
type kept struct{ of Cluster }

func (k kept) policies() *policies { return k.of.policies }

func (k kept) watched() (*kube.Cluster, error) { return k.of.Watched() }

func (k kept) workingSet(p *kube.Pod, container string) (float64, bool) {
	if k.of.WorkingSet == nil {
		return 0, false
	}
	return k.of.WorkingSet(p, container)
}

func (k kept) pod(ctx context.Context, at *location) (*kube.Pod, error) {
	c, err := k.of.watched(ctx)
	if err != nil {
		return nil, err
	}
	return c.PodOf(at.Namespace, at.Pod, at.UID)
}

func (k kept) workload(ctx context.Context, r kube.Ref) (*kube.Workload, error) {
	c, err := k.of.watched(ctx)
	if err != nil {
		return nil, err
	}
	return c.WorkloadOf(r)
}

func (k kept) allocatable(node, resource string) (float64, error) {
	c, err := k.of.Watched()
	if err != nil {
		return 0, err
	}
	return c.Allocatable(node, resource)
}

func (k kept) pace() float64 { return kube.Pace }

func (k kept) spared(_ context.Context, w *kube.Workload) (atOnce, least int64, by string, err error) {
	c, err := k.of.Watched()
	if err != nil {
		return 0, 0, "", err
	}
	return c.Spared(w, w.Spec.Selector.MatchLabels)
}

func (k kept) client() (*kube.Client, error) {
	c, err := k.of.Watched()
	if err != nil {
		return nil, err
	}
	return c.Client, nil
}

func (k kept) took(p *kube.Pod, before int64) {
	if c, err := k.of.Watched(); err == nil {
		c.Took(p, before)
	}
}

func (k kept) own(uid string) int64 {
	c, err := k.of.Watched()
	if err != nil {
		return 0
	}
	return c.Own(uid)
}

// tryAgainAfter is how long trimtab does not write a knob after the server refused a write: the
// reasons rarely end sooner.
const tryAgainAfter = time.Minute

// refusal remembers the server's last refusal for a while.
type refusal struct {
	err   error
	until time.Time
}

// note stores a refusal, and returns it unchanged.
func (r *refusal) note(now time.Time, err error) error {
	if err != nil {
		r.err, r.until = err, now.Add(tryAgainAfter)
	}
	return err
}

// is reports whether err is the recorded refusal.
func (r *refusal) is(err error) bool { return r.err != nil && errors.Is(err, r.err) }

func (r *refusal) still(now time.Time) error {
	if r.err == nil || now.After(r.until) {
		return nil
	}
	return r.err
}

// steps returns how many steps of a resource are in a core or byte. 10m is the smallest step of a CPU
// limit with an effect, to which the systemd driver rounds up; requests have steps of 1m, memory pages.
func steps(resource string, request bool) float64 {
	switch {
	case resource == trimtab.Memory:
		return 1.0 / 4096
	case request:
		return 1000
	}
	return 100
}

// least returns the smallest limit of a resource.
func least(resource string) float64 {
	if resource == trimtab.Memory {
		return 16 << 20
	}
	return 1 / steps(resource, false)
}

// roundUp returns the least value in whole steps that is not below v. A difference below a thousandth of a
// step is a rounding error.
func roundUp(v, steps float64) float64 { return math.Ceil(v*steps-1e-3) / steps }
