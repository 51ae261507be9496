package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file has the writes of a [Limit].

// change is a value that a [Limit] is to have.
type change struct {
	*Limit
	to trimtab.Amount
	// beside is the request beside a limit that it follows; 0: in the ratio of the template.
	beside float64
}

// Write requests a limit or a request with one PATCH of pods/resize. It sets both if the QoS class
// requires that.
func (l *Limit) Write(ctx context.Context, a trimtab.Amount) error {
	return write(ctx, change{Limit: l, to: a})
}

// WriteWith requests CPU and memory of one container with one PATCH.
func (l *Limit) WriteWith(ctx context.Context, a trimtab.Amount, other actuator.Knob, b trimtab.Amount) error {
	o, ok := other.(interface{ self() *Limit })
	if !ok || o.self().at.UID != l.at.UID || o.self().at.Container != l.at.Container || o.self().at.PodLevel != l.at.PodLevel {
		return fmt.Errorf("write %s with %s: they are not of one container, or of one pod as a whole: %w", l, other, trimtab.ErrRefused)
	}
	return write(ctx, change{Limit: l, to: a}, change{Limit: o.self(), to: b})
}

func (l *Limit) self() *Limit { return l }

// write checks changes of one container, and requests them.
func write(ctx context.Context, all ...change) error {
	for i := range all {
		l, a := all[i].Limit, &all[i].to
		if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
			return fmt.Errorf("write %s: %w", l, err)
		}
		if a.Unlimited {
			*a = l.Nearest(*a)
		}
		if err := l.MayWrite(ctx); err != nil {
			return err
		}
		p, c, err := l.container(ctx)
		if err != nil {
			return err
		}
		if err := l.allow(ctx, p, c, a.Value); err != nil {
			return fmt.Errorf("write %v to %s: %w", *a, l, err)
		}
	}
	return resize(ctx, all...)
}

// resize sends the PATCH of one container, against the version of its pod on which the decision was
// made.
func resize(ctx context.Context, all ...change) error {
	first := all[0]
	p, c := first.seen, first.at.own(first.seen)
	client, err := first.from.client()
	if err != nil {
		return err
	}
	before := make([]trimtab.Amount, len(all))
	limits, requests := map[string]string{}, map[string]string{}
	for i, l := range all {
		if l.generation != 0 && l.generationOf(p) != l.generation {
			return fmt.Errorf("write %s: somebody else changed the pod: %w", l.Limit, trimtab.ErrStale)
		}
		text := kube.Text(l.at.Resource, l.to.Value)
		if !l.at.Request {
			limits[l.at.Resource] = text
		}
		if of := containerOf(l.Limit, p, c); l.at.Request || tied(p, c) {
			requests[l.at.Resource] = text
		} else if of.follows() {
			requests[l.at.Resource] = kube.Text(l.at.Resource, cmp.Or(l.beside, of.following(l.to.Value)))
		}
		if before[i], err = l.Effective(ctx); err != nil {
			return err
		}
	}
	after, err := client.Resize(ctx, &p.Meta, c.Name, requests, limits)
	for again := 0; again < staleTries && errors.Is(err, trimtab.ErrStale); again++ {
		now, changed := first.unchanged(ctx, client, p, c)
		if changed != nil {
			return errors.Join(err, changed)
		}
		after, err = client.Resize(ctx, &now.Meta, c.Name, requests, limits)
	}
	if errors.Is(err, trimtab.ErrRefused) && len(all) == 1 {
		return first.refusal.note(first.now(), err)
	}
	if err != nil {
		return err
	}
	first.from.took(after, p.Generation)
	for i, l := range all {
		l.before, l.asked, l.generation = &before[i], l.now(), l.generationOf(after)
	}
	return nil
}

// staleTries is how often a write with an outdated version is retried: the kubelet writes the
// status of a pod several times while it starts or resizes it.
const staleTries = 3

// unchanged reads the pod again, since the watch may be behind. Only its status may differ: a
// limit that was changed and set back is of a later generation.
func (l *Limit) unchanged(ctx context.Context, client *kube.Client, p *kube.Pod, c *kube.Container) (*kube.Pod, error) {
	now, err := client.Pod(ctx, l.at.Namespace, l.at.Pod)
	if err != nil {
		return nil, err
	}
	has := l.at.own(now)
	if now.UID != p.UID || now.Generation != p.Generation || has == nil || !reflect.DeepEqual(has.Resources, c.Resources) {
		return nil, fmt.Errorf("write %s: somebody else changed it: %w", l, trimtab.ErrStale)
	}
	return now, nil
}

// allow returns why this much may not be requested.
func (l *Limit) allow(ctx context.Context, p *kube.Pod, c *kube.Container, v float64) error {
	if barred, why := l.full.bars(l.now(), l); barred && v >= l.full.from && v > float64(l.of(&c.Resources)[l.at.Resource]) {
		return fmt.Errorf("%s: %w", why, trimtab.ErrRefused)
	}
	if l.at.Request {
		return l.allowRequest(ctx, p, c, v)
	}
	limit, limited := c.Resources.Limits[l.at.Resource]
	now := float64(limit)
	falls := limited && v < now
	switch {
	case falls && containerOf(l, p, c).notBelow(v) != "":
		return fmt.Errorf("%s: %w", containerOf(l, p, c).notBelow(v), trimtab.ErrRefused)
	case (falls || !limited) && !containerOf(l, p, c).follows() && v < floorOf(p, c, l.at.Resource)-1e-9:
		return fmt.Errorf("below its request, or it would change its QoS class: %w", trimtab.ErrRefused)
	case falls || !limited:
		if why := l.mustNotFall(ctx); why != "" {
			return fmt.Errorf("nothing is lowered now: %s: %w", why, trimtab.ErrRefused)
		}
	case v > now && l.from.policies().bars(l.now(), p, l.at.Resource) != "":
		return fmt.Errorf("%s: %w", l.from.policies().bars(l.now(), p, l.at.Resource), trimtab.ErrRefused)
	case l.at.Resource == trimtab.Memory:
		return containerOf(l, p, c).allowMemory(v)
	}
	return nil
}

// Restore sets the pod's original value, even for memory, since the kubelet checks the usage first.
// It does so during a rollout and beyond bounds of the cluster, too, since new pods start with that
// value. If there was no limit, it sets the node's capacity.
func (l *Limit) Restore(ctx context.Context, undo []byte) error {
	u, err := actuator.ReadUndo[limitUndo](l.kind(), undo)
	if err != nil {
		return fmt.Errorf("restore %s: %w", l, err)
	}
	now, err := l.Read(ctx)
	if err != nil {
		return err
	}
	p, c, err := l.container(ctx)
	if err != nil {
		return err
	}
	goal := u.Found
	if goal.Unlimited {
		goal = l.Nearest(goal)
	}
	if now.Equal(u.Found, 1e-9) || now.Equal(goal, 1e-9) {
		return nil
	}
	if p.DeletionTimestamp != nil {
		return fmt.Errorf("restore %s: the pod is being deleted: %w", l, trimtab.ErrRefused)
	}
	if err := l.foreign(c, p); err != nil {
		return err
	}
	if err := l.refusal.still(l.now()); err != nil {
		return later(err)
	}
	err = resize(ctx, change{l, goal, u.Beside})
	if l.refusal.is(err) {
		return later(err)
	}
	return err
}

// later returns an error for a refusal after which a restore tries again.
func later(err error) error { return fmt.Errorf("%v: tried again", err) } //nolint:errorlint // a refusal would be final

// How long a resize may be deferred, or in error, before it is given up.
const (
	deferFor = time.Minute
	errorFor = 20 * time.Second
)

// Hopeless returns why the requested value will not take effect, in the kubelet's words.
func (l *Limit) Hopeless(ctx context.Context) string {
	p, c, err := l.container(ctx)
	if err != nil || l.before == nil {
		return ""
	}
	waited, most := l.now().Sub(l.asked), l.rules.DeferFor
	if most <= 0 {
		most = deferFor
	}
	if pending := p.Condition("PodResizePending"); pending != nil {
		never := pending.Reason == "Infeasible"
		if !never && waited < most {
			return ""
		}
		why := strings.ToLower(pending.Reason) + ": " + pending.Message
		mine, reserved := concerns(pending.Message, l.at.Resource), l.at.Request || l.at.Resource == trimtab.Memory
		if mine && (never || reserved) && !l.full.asked.Equal(l.asked) {
			l.full.note(l.now(), float64(l.of(&c.Resources)[l.at.Resource]), why, never)
			l.full.asked = l.asked
		}
		if mine && never && !l.at.Request {
			l.from.policies().learn(l.now(), p, l.at.Resource, pending.Message)
		}
		return why
	}
	if doing := p.Condition("PodResizeInProgress"); doing != nil && doing.Reason == "Error" && waited >= errorFor {
		return "error: " + doing.Message
	}
	return ""
}
