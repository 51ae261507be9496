package kubernetes

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube"
)

// Request is the CPU request of one container of one pod: on its node it is a weight, by which
// the kernel shares CPU time among pods that want it (see [podWeight]), and the container may
// also use what others leave idle. It is set in place of a limit: a limit stays as it is.
//
// A request is also what the scheduler reserves for the pod, so a node may refuse a larger one.
// trimtab then sets it back, and does not request that much again for 5 minutes, then 10, up to an
// hour. If the node's whole capacity is too small, it waits an hour at once.
type Request struct{ *Limit }

// Traits returns the abilities of a limit. In addition, the amount is a share by weight.
func (r *Request) Traits() actuator.Traits {
	t := r.Limit.Traits()
	t.Shared = r
	return t
}

// Fit does nothing: trimtab sets no parent group here.
func (r *Request) Fit(context.Context, trimtab.Amount) error { return nil }

// Adopted returns true: trimtab keeps a limit that the operator set.
func (r *Request) Adopted(context.Context, trimtab.Amount) (bool, error) { return true, nil }

// Adopt does nothing.
func (r *Request) Adopt(context.Context, trimtab.Amount) error { return nil }

// Cap does nothing: a limit that is added can be removed only with the pod.
func (r *Request) Cap(bool) {}

// Capped returns false.
func (r *Request) Capped() bool { return false }

// Contended returns false: trimtab sets no parent group here.
func (r *Request) Contended() bool { return false }

// Reserves returns true: the scheduler reserves a request.
func (r *Request) Reserves() bool { return true }

// knob returns the actuator's knob for the limit or the request.
func (l *Limit) knob() actuator.Knob {
	if l.at.Request {
		return &Request{l}
	}
	return l
}

func (l *Limit) kind() string {
	if l.at.Request {
		return requestKind
	}
	return limitKind
}

func (l *Limit) word() string {
	if l.at.Request {
		return "request"
	}
	return "limit"
}

// of returns the limits or the requests of a container, whichever this knob sets.
func (l *Limit) of(r *kube.Resources) kube.List {
	if l.at.Request {
		return r.Requests
	}
	return r.Limits
}

// actual returns the node's value for a container: the limit as it reads it back, or the request
// that it has allocated.
func (l *Limit) actual(s *kube.ContainerStatus) (v kube.Quantity, told bool) {
	if l.at.Request && s.Allocated != nil {
		v, told = s.Allocated[l.at.Resource]
		return v, told
	}
	v, told = l.of(s.Resources)[l.at.Resource]
	return v, told
}

func (l *Limit) roundUp(v float64) float64 { return roundUp(v, steps(l.at.Resource, l.at.Request)) }

// near reports whether the value that the node reads back equals the requested one, up to rounding: a limit
// of CPU to a whole step.
func (l *Limit) near(asked, actual float64) bool {
	off := math.Abs(asked-actual) * steps(l.at.Resource, l.at.Request)
	if l.at.Request {
		return off < 0.5
	}
	return off < 1 || l.at.Resource == trimtab.CPU && off < 1+1e-6
}

// underLimit returns the largest request below a container's own limit with which the pod keeps
// its QoS class.
func underLimit(p *kube.Pod, c *kube.Container, resource string) float64 {
	limit, limited := c.Resources.Limits[resource]
	switch {
	case !limited:
		return math.Inf(1)
	case wouldBeGuaranteed(p, c.Name, resource):
		return float64(limit) - 1/steps(resource, false)
	}
	return float64(limit)
}

// allowRequest returns why a request may not be made.
func (l *Limit) allowRequest(ctx context.Context, p *kube.Pod, c *kube.Container, v float64) error {
	now := float64(c.Resources.Requests[l.at.Resource])
	if v > underLimit(p, c, l.at.Resource)+1e-9 {
		return fmt.Errorf("above its limit, or it would change its QoS class: %w", trimtab.ErrRefused)
	}
	if v < now {
		back := l.before != nil && v >= l.before.Value-1e-9 // taking back what never came into force is not a reduction
		if why := l.mustNotFall(ctx); why != "" && !back {
			return fmt.Errorf("nothing is lowered now: %s: %w", why, trimtab.ErrRefused)
		}
		return nil
	}
	return l.fits(p, v-now, v)
}

// fits returns an error if the node, by its known pods, has no capacity for more of requests, with which the
// knob is to be value: the request would then take capacity from other pods without effect.
func (l *Limit) fits(p *kube.Pod, more, value float64) error {
	w, err := l.from.watched()
	if err != nil || w == nil {
		return err
	}
	room, err := w.HeadroomOn(p, l.at.Resource)
	if err != nil || more <= 0 {
		return nil //nolint:nilerr // the kubelet will decide
	}
	room -= p.Requests(l.at.Resource)
	if more <= room+1e-9 {
		return nil
	}
	why := fmt.Sprintf("node %s has room for %s more of requests", p.Spec.NodeName, kube.Text(l.at.Resource, math.Max(0, room)))
	return fmt.Errorf("%s: %w", l.full.note(l.now(), value, why, false), trimtab.ErrRefused)
}

// How long a value for which a node had no room is not requested again.
const (
	leastFull = 5 * time.Minute
	mostFull  = time.Hour
)

// full records a value of a knob for which a node had no room. The zero full forbids nothing.
type full struct {
	from  float64
	until time.Time
	wait  time.Duration
	words string
	// asked is the time of the request that the kubelet did not carry out, so that repeated looks
	// count it as one refusal.
	asked time.Time
}

// note records why a request had no effect, and returns the reason. never says that the node will
// never have the room.
func (f *full) note(now time.Time, asked float64, why string, never bool) string {
	if never {
		f.wait = mostFull
	}
	f.wait = min(max(2*f.wait, leastFull), mostFull)
	f.from, f.until, f.words = asked, now.Add(f.wait), why
	return why
}

// bars reports whether that much must not be requested yet, and why.
func (f *full) bars(now time.Time, of *Limit) (yes bool, why string) {
	if f.words == "" || now.After(f.until) {
		return false, ""
	}
	return true, fmt.Sprintf("its node, which had no room for a %s of %s (%s)", of.word(), trimtab.AmountOf(of.at.Resource, trimtab.Units(f.from)), f.words)
}

// passed records that a request came into force.
func (f *full) passed(v float64) {
	if f.words != "" && v >= f.from {
		*f = full{}
	}
}
