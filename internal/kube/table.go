package kube

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is implemented by the types of objects.go.
type object[T any] interface {
	*T
	meta() *Meta
}

// table has the objects of one kind, of all watched namespaces. A reflector for each namespace
// fills it.
type table[T any, P object[T]] struct {
	resource Resource
	logger   *slog.Logger
	// fresh completes a decoded object.
	fresh func(P)
	// changes counts the changes of several tables of a cluster.
	changes *atomic.Uint64

	// followed is called with each object that changed, and with the last state of one that was
	// deleted.
	followed atomic.Pointer[func(P)]

	mu  sync.RWMutex
	all map[key]P
	// broken counts objects that could not be read.
	broken int
}

// key names an object of one kind.
type key struct{ namespace, name string }

func newTable[T any, P object[T]](r Resource, logger *slog.Logger, changes *atomic.Uint64, fresh func(P)) *table[T, P] {
	return &table[T, P]{resource: r, logger: logger, changes: changes, fresh: fresh, all: map[key]P{}}
}

// get returns an object, or nil. The object is never changed afterwards.
func (t *table[T, P]) get(namespace, name string) P {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[key{namespace, name}]
}

// in iterates over the objects of a namespace, "" of all.
func (t *table[T, P]) in(namespace string) iter.Seq[P] {
	return func(yield func(P) bool) {
		t.mu.RLock()
		defer t.mu.RUnlock()
		for k, o := range t.all {
			if (namespace == "" || k.namespace == namespace) && !yield(o) {
				return
			}
		}
	}
}

func (t *table[T, P]) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.all)
}

// put stores an object unless a newer one is there: the answer to a write may be ahead of the
// watch.
func (t *table[T, P]) put(o P) {
	m := o.meta()
	k := key{m.Namespace, m.Name}
	t.mu.Lock()
	old := t.all[k]
	if old != nil && old.meta().UID == m.UID && newer(old.meta().ResourceVersion, m.ResourceVersion) {
		t.mu.Unlock()
		return
	}
	t.all[k] = o
	t.mu.Unlock()
	if !t.alike(old, o) {
		t.changes.Add(1)
		t.tell(o)
	}
}

// tell passes an object to the follower.
func (t *table[T, P]) tell(o P) {
	if f := t.followed.Load(); f != nil && o != nil {
		(*f)(o)
	}
}

// alike reports whether two states of an object differ in nothing that is read here but the
// version: a node says every few minutes that it is as before.
func (t *table[T, P]) alike(old, now P) bool {
	if old == nil {
		return false
	}
	was := *old
	P(&was).meta().ResourceVersion = now.meta().ResourceVersion
	return reflect.DeepEqual(&was, (*T)(now))
}

// newer reports whether one resource version of an object is after another. The server
// promises whole numbers that grow.
func newer(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	y, bad := strconv.ParseUint(b, 10, 64)
	return err == nil && bad == nil && x > y
}

// read decodes an object; nil if that fails, which is logged.
func (t *table[T, P]) read(obj any) P {
	o := P(new(T))
	switch in := obj.(type) {
	case *decoded:
		done, _ := in.object.(P) // nil: it belongs to another table
		return done
	case *unstructured.Unstructured:
		return t.complete(o, decode(in, o))
	case []byte:
		return t.complete(o, json.Unmarshal(in, o))
	}
	return nil
}

// complete finishes decoding an object, or logs the error.
func (t *table[T, P]) complete(o P, err error) P {
	if err != nil {
		t.mu.Lock()
		t.broken++
		t.mu.Unlock()
		t.logger.Warn("object of the cluster cannot be read", "resource", t.resource.String(), "err", err)
		return nil
	}
	slim(o.meta())
	if t.fresh != nil {
		t.fresh(o)
	}
	return o
}

// list reads all objects of a namespace.
func (t *table[T, P]) list(ctx context.Context, c *Client, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	out := &decodedList{}
	var err error
	out.ListMeta, err = c.list(ctx, t.resource, namespace, o, func(b []byte) {
		if o := t.read(b); o != nil {
			out.Items = append(out.Items, &decoded{o})
		}
	})
	return out, err
}

// slim drops annotations that trimtab does not read: some are as large as the object.
func slim(m *Meta) {
	for name := range m.Annotations {
		if !isRead(name) {
			delete(m.Annotations, name)
		}
	}
}

// isRead reports whether an annotation means something here.
func isRead(annotation string) bool {
	switch annotation {
	case "resource.opentelemetry.io/service.name", "kubernetes.io/config.hash", DeletionCost, ownCost,
		"autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas",
		"autoscaling.keda.sh/paused-scale-in", "autoscaling.keda.sh/paused-scale-out":
		return true
	}
	return false
}

// side is a table as the reflector of one namespace sees it.
type side[T any, P object[T]] struct {
	*table[T, P]
	namespace string
}

// Add, Update, Delete, Replace and Resync are cache.ReflectorStore.
func (s side[T, P]) Add(obj any) error { return s.Update(obj) }
func (s side[T, P]) Resync() error     { return nil }
func (s side[T, P]) Update(obj any) error {
	if o := s.read(obj); o != nil {
		s.put(o)
	}
	return nil
}

// Delete removes an object, unless one of its name has been created since.
func (s side[T, P]) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	k := key{u.GetNamespace(), u.GetName()}
	s.tell(s.read(obj))
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.all[k]; old != nil && old.meta().UID == string(u.GetUID()) {
		delete(s.all, k)
		s.changes.Add(1)
	}
	return nil
}

// Replace replaces the objects by a whole list. Newer ones, from answers to writes, stay.
func (s side[T, P]) Replace(list []any, _ string) error {
	there := map[key]string{}
	for _, obj := range list {
		if o := s.read(obj); o != nil {
			m := o.meta()
			there[key{m.Namespace, m.Name}] = m.UID
			s.put(o)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.all {
		if (s.namespace == "" || k.namespace == s.namespace) && there[k] != o.meta().UID {
			delete(s.all, k)
		}
	}
	s.changes.Add(1)
	return nil
}

// life is the state of the watch of one resource in one namespace.
type life struct {
	mu sync.Mutex
	// listed is true once all objects were listed.
	listed bool
	// open counts the watches that the server has open, seen is the last sign of one.
	open int
	seen time.Time
	// problem is why the server does not answer.
	problem error
}

func (l *life) saw(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.problem = now, nil
}

func (l *life) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = err
}
