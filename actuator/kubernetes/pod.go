package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube"
)

// location identifies a limit in the cluster.
type location struct {
	kube.Config
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container"`
	Resource  string `json:"resource"`
	// Workload is the workload to which the pod belongs.
	Workload kube.Ref `json:"workload"`
	// Request says that it is the request, not the limit; the undo's kind says so.
	Request bool `json:"-"`
}

// field is the name of the value in [kube.Managers].
func (at *location) field() string { return at.Container + "/" + at.Resource }

// setBy returns who resized the container last, as managedFields of the pod have it; "": it is not
// known, nor is the pod.
func (at *location) setBy(p *kube.Pod) string {
	if p == nil {
		return ""
	}
	return p.SetBy(at.field())
}

// Limit is the limit of one resource of one container of one pod, or, as part of a [Request], its
// request.
type Limit struct {
	at    location
	from  facts
	rules Options
	now   func() time.Time
	// seen is the pod at the last read.
	seen *kube.Pod
	// found is the last result of Read. generation is the pod's generation at that time, minus the
	// generations that trimtab's own writes caused: trimtab's write of another limit of the pod
	// must not look like a change by another program.
	found      trimtab.Amount
	generation int64
	// before is the value in force when another was requested; asked is the time of that request.
	before  *trimtab.Amount
	asked   time.Time
	refusal refusal
	// full records a value for which the node had no room.
	full full
}

// Traits returns the optional abilities of this knob.
func (l *Limit) Traits() actuator.Traits {
	return actuator.Traits{
		Pace: l.from.pace(), Location: l.Location, Effective: l.Effective, Hopeless: l.Hopeless, Version: l.Version, Mark: l.Mark,
		Status: l.Status, Floor: l.Floor, TakesOver: l.TakesOver, Restore: l.Restore, WriteWith: l.WriteWith,
		SetBy: func() string { return l.at.setBy(l.seen) },
	}
}

// limitKind and requestKind are the format names in what Undo returns.
const (
	limitKind   = "kubernetes-limit/1"
	requestKind = "kubernetes-request/1"
)

type limitUndo struct {
	location
	// Found is the value before the first write, Beside the request beside a limit that it follows.
	Found  trimtab.Amount `json:"found"`
	Beside float64        `json:"beside,omitempty"`
}

func openLimit(at location, from facts, rules Options) *Limit {
	return &Limit{at: at, from: from, rules: rules, now: time.Now}
}

// Undo describes the knob, with the value found. If new pods do not start with that, it has the
// value of the template.
func (l *Limit) Undo() []byte {
	found := l.found
	if l.rules.StartValues && !l.at.Request && !found.Unlimited {
		if w, err := l.from.workload(context.Background(), l.at.Workload); err == nil {
			template := &kube.Pod{Spec: w.Spec.Template.Spec}
			if c := template.Container(l.at.Container); c != nil && c.Resources.Limits[l.at.Resource] > 0 {
				found = trimtab.Units(float64(c.Resources.Limits[l.at.Resource]))
			}
		}
	}
	return actuator.UndoOf(l.kind(), limitUndo{l.at, found, beside(l, found)})
}

// TakesOver reports whether undo belongs to a limit if this knob sets a limit, or to a request if
// it sets a request.
func (l *Limit) TakesOver(undo []byte) bool {
	_, err := actuator.ReadUndo[limitUndo](l.kind(), undo)
	return err == nil
}

// String names the container.
func (l *Limit) String() string {
	return fmt.Sprintf("%s %s of pod %s/%s %s", l.at.Resource, l.word(), l.at.Namespace, l.at.Pod, l.at.Container)
}

// Resource is cpu or memory.
func (l *Limit) Resource() string { return l.at.Resource }

// Close does nothing: the knob has nothing open.
func (l *Limit) Close() error { return nil }

// Location identifies the container for other processes of this host.
func (l *Limit) Location() (string, error) {
	return path.Join("/kubernetes", l.at.Namespace, "pods", l.at.UID, l.at.Container), nil
}

// Probe returns an error if the pod does not exist.
func (l *Limit) Probe(ctx context.Context) error {
	_, _, err := l.container(ctx)
	return err
}

// container reads the pod, and returns the container in it.
func (l *Limit) container(ctx context.Context) (*kube.Pod, *kube.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", l, err)
	}
	p, err := l.from.pod(ctx, &l.at)
	if err != nil {
		return nil, nil, err
	}
	c := p.Container(l.at.Container)
	if c == nil {
		return nil, nil, trimtab.Invalidf("pod %s/%s has no container %q", l.at.Namespace, l.at.Pod, l.at.Container)
	}
	l.seen = p
	return p, c, nil
}

// Mark returns the pod as last watched, and a count of changes of other objects.
func (l *Limit) Mark() actuator.Mark {
	w, err := l.from.watched()
	if err != nil || w == nil {
		return actuator.Mark{}
	}
	p, changes := w.MarkOf(l.at.Namespace, l.at.Pod)
	if p == nil {
		return actuator.Mark{}
	}
	return actuator.Mark{Of: p, Changes: changes}
}

// Read returns the limit in the spec, unlimited if there is none.
func (l *Limit) Read(ctx context.Context) (trimtab.Amount, error) {
	p, c, err := l.container(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	l.found, l.generation = trimtab.Unlimited(), l.generationOf(p)
	if v, ok := l.of(&c.Resources)[l.at.Resource]; ok {
		l.found = trimtab.Units(float64(v))
	}
	return l.found, nil
}

func (l *Limit) generationOf(p *kube.Pod) int64 { return p.Generation - l.from.own(p.UID) }

// Version returns the generation of the pod at the last read.
func (l *Limit) Version() string {
	if l.generation == 0 {
		return ""
	}
	return fmt.Sprint(l.generation)
}

// Effective returns the limit in force on the node.
func (l *Limit) Effective(ctx context.Context) (trimtab.Amount, error) {
	p, c, err := l.container(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v, ok := l.of(&c.Resources)[l.at.Resource]
	if !ok {
		return trimtab.Unlimited(), nil
	}
	asked := float64(v)
	status := p.StatusOf(c.Name)
	if status == nil || status.Resources == nil {
		return trimtab.Units(asked), nil // the container does not run yet, and will start with this value
	}
	actual, has := l.actual(status)
	switch {
	case has && l.near(asked, float64(actual)) && settled(p):
		if l.at.Request && !weighs(asked, status) {
			break // the kubelet accepted the value and has not applied it yet
		}
		l.before = nil
		l.full.passed(asked)
		return trimtab.Units(asked), nil
	case has && !l.near(asked, float64(actual)):
		return trimtab.Units(float64(actual)), nil
	}
	if l.before != nil {
		return *l.before, nil
	}
	return trimtab.Units(asked), nil
}

// settled reports whether the kubelet has applied the pod's spec. Before 1.34 it did not say up
// to which generation.
func settled(p *kube.Pod) bool {
	return p.Condition("PodResizePending") == nil && p.Condition("PodResizeInProgress") == nil &&
		(p.Status.ObservedGeneration == 0 || p.Status.ObservedGeneration >= p.Generation)
}

// Nearest rounds a limit up to 10m of CPU or a page of memory, and a request to 1m of CPU, and to
// at most the node's capacity.
func (l *Limit) Nearest(a trimtab.Amount) trimtab.Amount {
	most := l.most()
	if a.Unlimited {
		return trimtab.Units(most)
	}
	return trimtab.Units(math.Min(math.Max(l.roundUp(a.Value), least(l.at.Resource)), most))
}

// most returns the largest value for a container: the capacity of its node, or what LimitRange and
// VPA allow, but never less than the value found.
func (l *Limit) most() float64 {
	most, resource := 1024.0, l.at.Resource // while the node is unknown
	if resource == trimtab.Memory {
		most = 1 << 44
	}
	if l.seen == nil {
		return most
	}
	if node, err := l.from.allocatable(l.seen.Spec.NodeName, resource); err == nil {
		most = math.Floor(node*100) / 100
	}
	if bound, _ := l.bound(); bound < most {
		most = math.Floor(bound*100+1e-9) / 100
	}
	if own := l.seen.Container(l.at.Container); own != nil {
		if l.at.Request {
			most = math.Min(most, underLimit(l.seen, own, resource))
		}
		most = math.Max(most, l.roundUp(float64(l.of(&own.Resources)[resource])))
	}
	return most
}

// bound returns the largest limit that the objects of the cluster allow, and which object it is;
// +Inf if none does, or if that is unknown.
func (l *Limit) bound() (most float64, by string) {
	most = math.Inf(1)
	c, err := l.from.watched()
	if err != nil || c == nil || l.seen == nil {
		return most, ""
	}
	if v, what, err := c.Most(l.seen, l.at.Container, l.at.Resource); err == nil && !l.at.Request {
		most, by = v, what
	}
	if _, v, what, err := c.Allowed(l.at.Workload, l.at.Container, l.at.Resource); err == nil && v < most {
		most, by = v, what
	}
	return most, by
}

// least returns the smallest value that the objects of the cluster allow.
func (l *Limit) least(own *kube.Container) float64 {
	out := least(l.at.Resource)
	c, err := l.from.watched()
	if err != nil || c == nil {
		return out
	}
	if v, request, err := c.Least(l.at.Namespace, own, l.at.Resource); err == nil {
		if l.at.Request {
			v = math.Max(v, request)
		}
		out = math.Max(out, l.roundUp(v))
	}
	if v, _, _, err := c.Allowed(l.at.Workload, l.at.Container, l.at.Resource); err == nil {
		out = math.Max(out, l.roundUp(v))
	}
	return out
}

// Floor returns the least value that may be set: the request, or the present value while it must
// not be lowered.
func (l *Limit) Floor(ctx context.Context) (trimtab.Amount, error) {
	p, c, err := l.container(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v, limited := l.of(&c.Resources)[l.at.Resource]
	if !limited && !l.at.Request {
		return trimtab.Units(math.Max(floorOf(p, c, l.at.Resource), l.least(c))), nil
	}
	limit := float64(v)
	inUse, why := containerOf(l, p, c).inUse()
	if why != "" || l.mustNotFall(ctx) != "" {
		// Rounded up to whole steps, as the node does.
		return trimtab.Units(l.roundUp(limit)), nil
	}
	floor := math.Min(math.Max(l.least(c), inUse), l.roundUp(limit))
	if l.at.Request || containerOf(l, p, c).follows() {
		return trimtab.Units(floor), nil
	}
	return trimtab.Units(math.Max(floorOf(p, c, l.at.Resource), floor)), nil
}

// floorOf returns the least limit with which the pod keeps its QoS class.
func floorOf(p *kube.Pod, c *kube.Container, resource string) float64 {
	if p.Status.QOSClass == guaranteed {
		return 0 // the request changes together with the limit
	}
	request := roundUp(float64(c.Resources.Requests[resource]), steps(resource, false))
	if wouldBeGuaranteed(p, c.Name, resource) && same(request, float64(c.Resources.Requests[resource])) {
		request += least(resource)
	}
	return request
}

// The QoS classes, which a resize must not change.
const (
	guaranteed = "Guaranteed"
	bestEffort = "BestEffort"
)

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// wouldBeGuaranteed reports whether all other limits of the pod equal its requests, so that this
// limit at its request would make it Guaranteed.
func wouldBeGuaranteed(p *kube.Pod, container, resource string) bool {
	for _, all := range [][]kube.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range all {
			for _, r := range []string{trimtab.CPU, trimtab.Memory} {
				if all[i].Name == container && r == resource {
					continue
				}
				limit, ok := all[i].Resources.Limits[r]
				request, has := all[i].Resources.Requests[r]
				if !ok || has && !same(float64(limit), float64(request)) {
					return false
				}
			}
		}
	}
	return true
}

// mustNotFall returns why the workload must not be lowered now, or "".
func (l *Limit) mustNotFall(ctx context.Context) string {
	c, err := l.from.watched()
	if err != nil || c == nil {
		return ""
	}
	of, err := l.from.workload(ctx, l.at.Workload)
	if err != nil {
		return "" // if the pod is gone, other checks report it
	}
	return c.Rollout(of)
}

// MayWrite returns an error if the pod cannot be resized, or another program resizes it.
func (l *Limit) MayWrite(ctx context.Context) error {
	if err := l.refusal.still(l.now()); err != nil {
		return err
	}
	p, c, err := l.container(ctx)
	if err != nil {
		return err
	}
	if err := l.resizable(p, c); err != nil {
		return err
	}
	return l.foreign(c, p)
}

// foreign returns an error if another program sets the limit, or none can.
func (l *Limit) foreign(c *kube.Container, p *kube.Pod) error {
	w, err := l.from.watched()
	if err != nil || w == nil {
		return err
	}
	if err := w.Resizable(); errors.Is(err, trimtab.ErrUnsupported) {
		return errors.Join(err, actuator.ErrReadOnly)
	} else if err != nil {
		return err
	}
	other, err := w.Others(l.at.Workload, c.Name, l.at.Resource, l.at.Request || p.Status.QOSClass == guaranteed || containerOf(l, p, c).follows())
	if err != nil {
		return err
	}
	if other = cmp.Or(other, p.HeldBy(l.at.field(), l.rules.TakeOver)); other != "" {
		return readOnly(other)
	}
	return paused(w, l.at.Workload)
}

// readOnly returns the error for a knob that is only recommended: another program sets it, or none
// can.
func readOnly(why string) error {
	return fmt.Errorf("%s: %w: %w", why, actuator.ErrReadOnly, trimtab.ErrRefused)
}

// paused returns an error if a person has paused the workload by an annotation of KEDA's.
func paused(w *kube.Cluster, r kube.Ref) error {
	of, err := w.WorkloadOf(r)
	if err != nil {
		return err
	}
	if of.Annotations["autoscaling.keda.sh/paused"] == "true" || of.Annotations["autoscaling.keda.sh/paused-replicas"] != "" {
		return fmt.Errorf("%s is paused by its annotation autoscaling.keda.sh/paused: %w", r, trimtab.ErrRefused)
	}
	return nil
}

// resizable returns an error if this container cannot be resized.
func (l *Limit) resizable(p *kube.Pod, c *kube.Container) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, trimtab.ErrRefused)...)
	}
	_, limited := c.Resources.Limits[l.at.Resource]
	_, requested := c.Resources.Requests[l.at.Resource]
	status := p.StatusOf(c.Name)
	switch {
	case p.DeletionTimestamp != nil:
		return refuse("the pod is being deleted")
	case p.Status.QOSClass == bestEffort:
		return refuse("the pod is of QoS class BestEffort, which a resize cannot change: give the container requests and limits")
	case l.at.Request && !requested:
		return refuse("container %s has no %s request, and one added by a resize can only be taken back by replacing the pod: give it one", c.Name, l.at.Resource)
	case l.at.Request && ofPod(p, l.at.Resource):
		return refuse("the pod has %s resources of its own (spec.resources), and its weight goes by those", l.at.Resource)
	case !l.at.Request && !limited && !l.rules.AddLimits:
		return refuse("container %s has no %s limit, and one added by a resize can only be taken back by replacing the pod: give it one", c.Name, l.at.Resource)
	case !limited && !requested:
		return refuse("container %s has neither a limit nor a request of %s: the server would make the limit its request, too", c.Name, l.at.Resource)
	case c.Restarts(l.at.Resource):
		return readOnly(fmt.Sprintf("a resize of %s restarts container %s (its resizePolicy)", l.at.Resource, c.Name))
	case l.at.Resource == trimtab.Memory && status != nil && status.State.Running == nil && status.Ended() != nil:
		return nil // it starts again with the limit of the spec: after a kill it may be raised before that
	case status == nil || status.State.Running == nil:
		return refuse("container %s does not run yet", c.Name)
	case status.Resources == nil:
		return refuse("the node does not tell what container %s has: resizing needs Kubernetes 1.33 or later on nodes, too", c.Name)
	}
	return nil
}
