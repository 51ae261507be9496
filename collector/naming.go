package collector

import (
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Naming returns further attributes of a sender of spans, such as the workload of the pod that
// its own attributes name. settled is false while more may become known: then it is called again.
type Naming func(attrs []trimtab.Attr) (more []trimtab.Attr, settled bool)

// How many resources are remembered with their names, and for how long if unsettled.
const (
	maxNamed   = 4096
	askedAgain = 5 * time.Second
)

// namer adds to a resource the attributes that a Naming knows.
type namer struct {
	of    Naming
	now   func() time.Time
	mu    sync.Mutex
	known map[*Resource]named
}

type named struct {
	resource *Resource
	again    time.Time // zero: never
}

// name returns the resource with the attributes that Naming adds.
func (n *namer) name(r *Resource) *Resource {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if k, ok := n.known[r]; ok && (k.again.IsZero() || now.Before(k.again)) {
		return k.resource
	}
	attrs := codec.UnpackResource(r.packed)
	more, settled := n.of(attrs)
	k := named{resource: r}
	if len(more) > 0 {
		k.resource = NewResource(append(more, attrs...))
	}
	if !settled {
		k.again = now.Add(askedAgain)
	}
	if n.known == nil || len(n.known) >= maxNamed {
		n.known = map[*Resource]named{}
	}
	n.known[r] = k
	return k.resource
}
