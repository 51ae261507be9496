package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube"
)

// asked implements facts by requests to the API server, for a restore that has only the journal.
// All knobs of a cluster share one, so that their requests have one rate limit and many pods of a
// namespace are read with one list.
type asked struct {
	config kube.Config
	once   sync.Once
	c      *kube.Client
	err    error

	mu   sync.Mutex
	pods map[string]*podList
}

// podList has the pods of one namespace, by name.
type podList struct {
	// at is the time of the first read of a pod, reads the number of reads since.
	at    time.Time
	reads int
	// all is nil while each pod is read on its own.
	all map[string]*kube.Pod
	// alone says that this process may not list pods.
	alone bool
}

// listAfter is how many pods of a namespace are read one by one before all are listed.
const listAfter = 20

// listFor is how long a list is used. A pod that was changed since is not overwritten: the server
// compares the version with each write.
const listFor = 30 * time.Second

func (a *asked) watched() (*kube.Cluster, error) { return nil, nil } //nolint:nilnil // see facts
func (a *asked) policies() *policies             { return nil }
func (a *asked) own(string) int64                { return 0 } // each limit is read anew before it is written

func (a *asked) workingSet(*kube.Pod, string) (float64, bool) { return 0, false }

// pace reserves one request a second for lists.
func (a *asked) pace() float64 { return kube.Pace - 1 }

func (a *asked) client() (*kube.Client, error) {
	a.once.Do(func() { a.c, a.err = kube.Open(a.config) })
	return a.c, a.err
}

func (a *asked) allocatable(node, resource string) (float64, error) {
	c, err := a.client()
	if err != nil {
		return 0, err
	}
	return c.Allocatable(context.Background(), node, resource)
}

func (a *asked) podsOf(ctx context.Context, w *kube.Workload) (own []*kube.Pod, err error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.listOf(w.Namespace)
	if l.all == nil {
		if err := a.list(ctx, c, w.Namespace, l); err != nil {
			return nil, err
		}
	}
	for _, p := range l.all {
		if p.Matches(w.Spec.Selector.MatchLabels) && !p.Over() {
			own = append(own, p)
		}
	}
	return own, nil
}

func (a *asked) spared(ctx context.Context, w *kube.Workload) (atOnce, least int64, by string, err error) {
	c, err := a.client()
	if err != nil {
		return 0, 0, "", err
	}
	return c.Spared(ctx, w, w.Spec.Selector.MatchLabels)
}

// took stores the answer to a write.
func (a *asked) took(p *kube.Pod, _ int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.pods[p.Namespace]; l != nil && l.all != nil {
		l.all[p.Name] = p
	}
}

func (a *asked) pod(ctx context.Context, at *location) (*kube.Pod, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	p, listed, err := a.listed(ctx, c, at)
	if err == nil && !listed {
		p, err = c.Pod(ctx, at.Namespace, at.Pod)
	}
	if err != nil {
		return nil, err
	}
	if p == nil || p.UID != at.UID && at.UID != "" || p.Over() {
		return nil, fmt.Errorf("find pod %s/%s: it ended, or was replaced by another of its name: %w", at.Namespace, at.Pod, os.ErrNotExist)
	}
	return p, nil
}

// listed returns a pod from a recent list; nil: the list does not have it. It makes no list for
// only a few pods.
func (a *asked) listed(ctx context.Context, c *kube.Client, at *location) (p *kube.Pod, listed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.listOf(at.Namespace)
	if l.reads++; l.alone || l.reads <= listAfter && l.all == nil {
		return nil, false, nil
	}
	if l.all == nil {
		if err := a.list(ctx, c, at.Namespace, l); errors.Is(err, trimtab.ErrRefused) {
			l.alone = true
			return nil, false, nil
		} else if err != nil {
			return nil, false, err
		}
	}
	return l.all[at.Pod], true, nil
}

// listOf returns the list of the pods of a namespace, empty where that is too old.
func (a *asked) listOf(namespace string) *podList {
	if a.pods == nil {
		a.pods = map[string]*podList{}
	}
	l := a.pods[namespace]
	if l == nil || !l.alone && time.Since(l.at) >= listFor {
		l = &podList{at: time.Now()}
		a.pods[namespace] = l
	}
	return l
}

func (a *asked) list(ctx context.Context, c *kube.Client, namespace string, l *podList) (err error) {
	l.at = time.Now()
	l.all, err = c.PodsIn(ctx, namespace)
	return err
}

func (a *asked) workload(ctx context.Context, r kube.Ref) (*kube.Workload, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	return c.Workload(ctx, r)
}

// Reopener opens knobs from the results of their Undo. Those of one cluster share a client.
type Reopener struct {
	mu  sync.Mutex
	all map[kube.Config]*asked
}

func (r *Reopener) of(c kube.Config) *asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[kube.Config]*asked{}
	}
	if r.all[c] == nil {
		r.all[c] = &asked{config: c}
	}
	return r.all[c]
}

// Limit opens the [Limit] or [Request] that undo describes, which asks the server itself.
func (r *Reopener) Limit(b []byte) (actuator.Knob, error) {
	u, err := actuator.ReadUndo[limitUndo](limitKind, b)
	request := err != nil
	if request {
		u, err = actuator.ReadUndo[limitUndo](requestKind, b)
	}
	if err != nil {
		return nil, err
	}
	u.Request = request
	l := openLimit(u.location, r.of(u.Config), Options{})
	l.found = u.Found
	return l.knob(), nil
}

// Scale opens the knob that undo describes, which asks the server itself.
func (r *Reopener) Scale(b []byte) (*Scale, error) {
	u, err := actuator.ReadUndo[scaleUndo](scaleKind, b)
	if err != nil {
		return nil, err
	}
	s := openScale(u.Config, u.Workload, u.UID, r.of(u.Config), Options{RestoreBaseline: u.Lower})
	s.found = u.Replicas
	return s, nil
}
