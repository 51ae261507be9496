package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/trimtab/trimtab"
)

// beat is the interval of heartbeats to the server. A watch whose connection broke unnoticed
// shows nothing; a heartbeat does.
const beat = 10 * time.Second

// MaxAge is the largest age of the cached state for a decision: three heartbeats.
const MaxAge = 3 * beat

// settleFor is how long a start waits for the lists.
const settleFor = 30 * time.Second

// Cluster is the last known state of a cluster's objects. Its methods are safe for concurrent
// use, and send no requests.
type Cluster struct {
	*Client
	logger *slog.Logger
	now    func() time.Time

	tables tables
	// changes counts the changes of all tables except that of pods; podChanges counts those of
	// pods.
	changes, podChanges atomic.Uint64

	mu sync.Mutex
	// lives has the watches of each resource, by its name.
	lives map[string][]*life
	// lived is the last answer of the server to a beat.
	lived time.Time
	// late is added to the age of everything, for tests.
	late time.Duration
	// resize says whether the server has pods/resize; nil: unknown. version is the server's last
	// answer to a beat.
	resize  *bool
	version Version
	// own counts the generations of pods that this process made, by uid.
	own    map[string]int64
	index  *index
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// tables have the objects of a cluster, by resource.
type tables struct {
	workloads   map[string]*table[Workload, *Workload] // by kind
	replicasets *table[ReplicaSet, *ReplicaSet]
	pods        *table[Pod, *Pod]
	nodes       *table[Node, *Node]
	hpas        *table[HPA, *HPA]
	vpas        *table[VPA, *VPA]
	scaled      *table[ScaledObject, *ScaledObject]
	budgets     *table[Budget, *Budget]
	quotas      *table[Quota, *Quota]
	ranges      *table[Range, *Range]
}

// Watch begins to watch the namespaces, all of them where none is named, until Close. kinds are those
// of workloads besides Deployment and StatefulSet.
func Watch(ctx context.Context, c *Client, namespaces []string, logger *slog.Logger, kinds ...string) *Cluster {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	w := &Cluster{Client: c, logger: logger, now: time.Now, lives: map[string][]*life{}}
	ctx, w.cancel = context.WithCancel(klog.NewContext(ctx, logr.FromSlogHandler(quiet(logger))))
	if namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces))); len(namespaces) == 0 {
		namespaces = []string{""}
	}
	w.tables.workloads = map[string]*table[Workload, *Workload]{}
	for _, kind := range append([]string{Deployment, StatefulSet}, kinds...) {
		if r, err := ResourceOfKind(kind); err == nil && w.tables.workloads[kind] == nil {
			w.tables.workloads[kind] = follow(ctx, w, r, namespaces, func(o *Workload) { o.Kind = kind })
		}
	}
	w.tables.replicasets = follow[ReplicaSet](ctx, w, replicasets(), namespaces, nil)
	w.tables.pods = follow[Pod](ctx, w, pods(), namespaces, nil)
	w.tables.nodes = follow[Node](ctx, w, nodes(), namespaces, nil)
	w.tables.hpas = follow[HPA](ctx, w, hpas(), namespaces, nil)
	w.tables.budgets = follow[Budget](ctx, w, budgets(), namespaces, nil)
	w.tables.quotas = follow[Quota](ctx, w, quotas(), namespaces, nil)
	w.tables.ranges = follow[Range](ctx, w, ranges(), namespaces, nil)
	w.tables.vpas = follow[VPA](ctx, w, vpas(), namespaces, nil)
	w.tables.scaled = follow[ScaledObject](ctx, w, scaledObjects(), namespaces, nil)
	w.wg.Go(func() { w.live(ctx) })
	return w
}

// quiet returns a handler for client-go's log, which is dropped unless the level is below debug.
func quiet(l *slog.Logger) slog.Handler {
	if l.Enabled(context.Background(), slog.LevelDebug-4) {
		return l.Handler()
	}
	return slog.DiscardHandler
}

// Close ends the watches.
func (w *Cluster) Close() error {
	w.cancel()
	w.wg.Wait()
	return nil
}

// follow watches one resource in each namespace, and returns the table of its objects, each of which
// fresh completes. Resources that a cluster may lack are watched once the server has them.
func follow[T any, P object[T]](ctx context.Context, w *Cluster, r Resource, namespaces []string, fresh func(P)) *table[T, P] {
	t := newTable(r, w.logger, &w.changes, fresh)
	if r == pods() {
		t.changes = &w.podChanges
	}
	if !r.Namespaced {
		namespaces = []string{""}
	}
	optional := r == vpas() || r == scaledObjects() || r == rollouts()
	for _, namespace := range namespaces {
		l := &life{}
		w.lives[t.resource.String()] = append(w.lives[t.resource.String()], l)
		w.wg.Go(func() {
			if optional && !w.awaitKind(ctx, t.resource, l) {
				return
			}
			source := &source{cluster: w, resource: t.resource, namespace: namespace, life: l}
			source.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return t.list(ctx, w.Client, namespace, o)
			}
			store := listing[T, P]{side[T, P]{t, namespace}, l}
			cache.NewReflectorWithOptions(source.listWatch(), &unstructured.Unstructured{}, store, cache.ReflectorOptions{Name: t.resource.String()}).RunWithContext(ctx)
		})
	}
	return t
}

// listing records that a list is complete.
type listing[T any, P object[T]] struct {
	side[T, P]
	life *life
}

// Replace is side.Replace, and marks the list as complete.
func (l listing[T, P]) Replace(list []any, version string) error {
	err := l.side.Replace(list, version)
	l.life.mu.Lock()
	l.life.listed = true
	l.life.mu.Unlock()
	return err
}

// lookForKind is how often the client asks the server for an optional kind. It is less than MaxAge,
// so that a request that waits for the rate limit does not make the last answer too old.
const lookForKind = MaxAge / 2

// awaitKind waits until the server has a resource. While it has none, nothing is
// missing.
func (w *Cluster) awaitKind(ctx context.Context, r Resource, l *life) bool {
	for {
		has, err := w.Serves(ctx, r.Group, r.Version, r.Name, "watch")
		if err == nil && has {
			return true
		}
		l.mu.Lock()
		if l.problem = err; err == nil {
			l.listed, l.seen = true, w.now()
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookForKind):
		}
	}
}

// live sends the heartbeats.
func (w *Cluster) live(ctx context.Context) {
	for {
		if version, err := w.Version(ctx); err == nil {
			w.mu.Lock()
			w.lived, w.version = w.now(), version
			told := w.resize != nil
			w.mu.Unlock()
			if !told {
				w.askResize(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
	}
}

// askResize asks whether limits of running pods can be changed.
func (w *Cluster) askResize(ctx context.Context) {
	has, err := w.Serves(ctx, "", "v1", "pods/resize", "patch")
	if err != nil {
		return
	}
	w.mu.Lock()
	w.resize = &has
	w.mu.Unlock()
}

// source lists and watches one resource in one namespace, and records errors.
type source struct {
	cluster   *Cluster
	resource  Resource
	namespace string
	life      *life
	list      func(context.Context, metav1.ListOptions) (runtime.Object, error)
}

func (s *source) listWatch() *cache.ListWatch {
	of := s.cluster.of(s.resource, s.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := s.list(ctx, o)
			if err != nil {
				return nil, s.failed(ctx, "list", err)
			}
			s.life.saw(s.cluster.now())
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			in, err := of.Watch(ctx, o)
			if err != nil {
				return nil, s.failed(ctx, "watch", err)
			}
			s.life.saw(s.cluster.now())
			return s.guard(in), nil
		},
	}
}

// failed records why the server does not answer, and logs each reason once.
func (s *source) failed(ctx context.Context, verb string, err error) error {
	named := kindOf(err, verb, s.resource, s.namespace, "")
	if ctx.Err() == nil {
		s.life.mu.Lock()
		news := s.life.problem == nil || s.life.problem.Error() != named.Error()
		s.life.mu.Unlock()
		s.life.failed(named)
		if news {
			s.cluster.logger.Warn("the cluster does not tell", "resource", s.resource.String(), "namespace", s.namespace, "err", named)
		}
	}
	return err
}

// guarded is a watch whose end is recorded.
type guarded struct {
	watch.Interface
	out  chan watch.Event
	stop sync.Once
	done chan struct{}
}

// ResultChan returns the channel of events.
func (g *guarded) ResultChan() <-chan watch.Event { return g.out }

// Stop ends the watch.
func (g *guarded) Stop() {
	g.stop.Do(func() { close(g.done) })
	g.Interface.Stop()
}

// guard passes the events of a watch on, and records activity and its end.
func (s *source) guard(in watch.Interface) watch.Interface {
	g := &guarded{Interface: in, out: make(chan watch.Event), done: make(chan struct{})}
	s.life.mu.Lock()
	s.life.open++
	s.life.mu.Unlock()
	s.cluster.wg.Go(func() {
		defer close(g.out)
		defer func() {
			s.life.mu.Lock()
			s.life.open--
			s.life.mu.Unlock()
		}()
		for e := range in.ResultChan() {
			s.life.saw(s.cluster.now())
			select {
			case g.out <- e:
			case <-g.done:
			}
		}
	})
	return g
}

// Ready waits until everything was listed once, or returns what could not be listed.
func (w *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		missing := w.unlisted()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("list objects of the cluster: %w", errors.Join(missing...))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unlisted says of each resource that was not listed why.
func (w *Cluster) unlisted() (all []error) {
	for name, lives := range w.lives {
		for _, l := range lives {
			l.mu.Lock()
			listed, problem := l.listed, l.problem
			l.mu.Unlock()
			if listed || errors.Is(problem, trimtab.ErrRefused) {
				continue // it is reported where it is needed: without this right the rest still works
			}
			problem = cmp.Or(problem, fmt.Errorf("list %s: no answer yet", name))
			all = append(all, problem)
		}
	}
	return all
}

// Fresh returns why the state of a resource is too old, or unknown, to decide on; nil: it is
// fresh.
func (w *Cluster) fresh(resources ...Resource) error {
	w.mu.Lock()
	lived, late := w.lived, w.late
	w.mu.Unlock()
	now := w.now().Add(late)
	for _, r := range resources {
		for _, l := range w.lives[r.String()] {
			l.mu.Lock()
			listed, open, seen, problem := l.listed, l.open > 0, l.seen, l.problem
			l.mu.Unlock()
			if open && lived.After(seen) {
				seen = lived
			}
			switch age := now.Sub(seen); {
			case problem != nil && (!listed || age > MaxAge):
				return problem
			case !listed:
				return fmt.Errorf("%s of the cluster were not listed yet: %w", r, trimtab.ErrStale)
			case age > MaxAge:
				return fmt.Errorf("the API server said nothing of %s for %v: %w", r, age.Round(time.Second), trimtab.ErrStale)
			}
		}
	}
	return nil
}

// Missing lists what could not be read of the cluster, and why.
func (w *Cluster) Missing() (all []error) {
	for _, lives := range w.lives {
		for _, l := range lives {
			l.mu.Lock()
			if l.problem != nil {
				all = append(all, l.problem)
			}
			l.mu.Unlock()
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}
