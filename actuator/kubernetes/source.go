package kubernetes

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// Cluster is where knobs are.
type Cluster struct {
	// Config says which cluster; it is journaled, so that a restore finds it again.
	Config kube.Config
	// Watched returns the watched objects; its error says why there are none yet.
	Watched func() (*kube.Cluster, error)
	// Rules returns what was declared for a workload; nil: nothing was.
	Rules func(kube.Ref) Options

	policies *policies
}

// Options are what was declared for one workload beside its bounds.
type Options struct {
	// Weighs: CPU is shared by weight, so the request is set, except of Guaranteed pods, and a
	// limit stays.
	Weighs bool
	// AddLimits allows adding a limit to a container without one. It cannot be removed again: a
	// restore sets what its node has.
	AddLimits bool
	// AllowZero lets the number of pods go to 0 and come back from it.
	AllowZero bool
	// StartValues: new pods begin with what the others have, not with what their template says:
	// the template is then what a limit is restored to, and the others say what one more pod
	// takes.
	StartValues bool
	// RestoreBaseline has a restore lower the number of pods, too, as far as disruption
	// budgets allow.
	RestoreBaseline bool
	// DeferFor is how long a kubelet may defer a resize until it is given back; 0: a minute.
	DeferFor time.Duration
}

func (c *Cluster) rules(r kube.Ref) Options {
	if c.Rules == nil {
		return Options{}
	}
	return c.Rules(r)
}

// facts is what a knob reads of the cluster. There are two: the watches, and, for a restore from
// the journal alone, the server itself.
type facts interface {
	pod(ctx context.Context, at *place) (*kube.Pod, error)
	workload(ctx context.Context, r kube.Ref) (*kube.Workload, error)
	client() (*kube.Client, error)
	// policies is what kubelets told of their nodes; nil: nobody asks.
	policies() *policies
	// took stores the answer to a write of a pod that had the generation before; own returns how
	// many generations of a pod such writes caused.
	took(p *kube.Pod, before int64)
	own(uid string) int64
	// watched is nil where nothing is known but the object itself.
	watched() (*kube.Cluster, error)
	// allocatable is what a node has for pods.
	allocatable(node, resource string) (float64, error)
	// pace is how many requests a second are left for writes and what they need.
	pace() float64
	// spared is what disruption budgets leave; see [kube.Cluster.Spared].
	spared(ctx context.Context, w *kube.Workload) (atOnce, least int64, by string, err error)
}

// kept is facts from the watches.
type kept struct{ of Cluster }

func (k kept) policies() *policies { return k.of.policies }

func (k kept) watched() (*kube.Cluster, error) { return k.of.Watched() }

func (k kept) pod(ctx context.Context, at *place) (*kube.Pod, error) {
	c, err := k.of.Watched()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return c.PodOf(at.Namespace, at.Pod, at.UID)
}

func (k kept) workload(ctx context.Context, r kube.Ref) (*kube.Workload, error) {
	c, err := k.of.Watched()
	if err == nil {
		err = ctx.Err()
	}
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

// tryAgainAfter is how long a knob that the server refused to change is left alone: the reasons
// rarely end sooner.
const tryAgainAfter = time.Minute

// refusal is the server's last refusal, for a while.
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

// is reports whether an error is the refusal that was noted last.
func (r *refusal) is(err error) bool { return r.err != nil && errors.Is(err, r.err) }

func (r *refusal) still(now time.Time) error {
	if r.err == nil || now.After(r.until) {
		return nil
	}
	return r.err
}

// tenMilli is the step of CPU limits: the least that has an effect, and what the systemd
// driver rounds up to.
const tenMilli = 100

// page is the step of memory limits.
const page = 4096

// least is the smallest limit of a resource.
func least(resource string) float64 {
	if resource == trimtab.Memory {
		return 16 << 20
	}
	return 1.0 / tenMilli
}

// roundUp returns the least value that a limit can be set to and that is not below v.
func roundUp(resource string, v float64) float64 {
	if resource == trimtab.Memory {
		return math.Ceil(v/page) * page
	}
	// Below a thousandth of a step it is what rounding of numbers left.
	return math.Ceil(v*tenMilli-1e-3) / tenMilli
}

// near reports whether a limit that the kubelet reads back is the requested one.
func near(resource string, asked, actual float64) bool {
	if resource == trimtab.Memory {
		return math.Abs(asked-actual) < page
	}
	return math.Abs(asked-actual) <= 1.0/tenMilli+1e-9
}
