package collector

import (
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Bounds of one resource. Longer keys and values identify nothing and are left out.
const (
	maxAttrs      = 128
	maxKeyBytes   = 256
	maxValueBytes = 1024
	maxPacked     = 16 << 10
)

// Resource is the sender of spans in the encoding of frames. It is immutable; the same pointer
// means the same resource.
type Resource struct{ packed []byte }

// NewResource packs attrs: at most 128 of them, in the given order, those with
// a key over 256 or a value over 1,024 bytes or no key left out.
func NewResource(attrs []trimtab.Attr) *Resource {
	kept := make([]trimtab.Attr, 0, min(len(attrs), maxAttrs))
	size := 0
	for _, a := range attrs {
		n := len(a.Key) + len(a.Value) + 4
		switch {
		case a.Key == "" || len(a.Key) > maxKeyBytes || len(a.Value) > maxValueBytes:
		case len(kept) == maxAttrs || size+n > maxPacked:
			return &Resource{packed: codec.PackResource(kept)}
		default:
			kept = append(kept, a)
			size += n
		}
	}
	return &Resource{packed: codec.PackResource(kept)}
}

// Packed returns the frame's form, not to be changed.
func (r *Resource) Packed() []byte { return r.packed }

// Service returns the attribute service.name, "" without one.
func (r *Resource) Service() string {
	for _, a := range codec.UnpackResource(r.packed) {
		if a.Key == "service.name" {
			return a.Value
		}
	}
	return ""
}

// Bounds of a ResourceCache: a resource whose raw form is longer than maxRaw is decoded every
// time, and a generation that has reached generationEntries or generationBytes is replaced by the
// next.
const (
	maxRaw            = 16 << 10
	generationEntries = 4096
	generationBytes   = 4 << 20
)

// ResourceCache caches decoded resources by their raw bytes. Senders repeat a few resources all the
// time, so most need only a look-up. Memory is bounded by two generations of 4 MiB of raw and as
// much packed bytes: entries that are not asked for during a whole generation are dropped. The zero
// value is ready; it is safe for concurrent use.
type ResourceCache struct {
	mu        sync.RWMutex
	young     map[string]*Resource
	old       map[string]*Resource
	youngSize int
}

// Get returns the resource whose raw form is raw, calling decode when it is
// not known. A decode error is returned and not remembered.
func (c *ResourceCache) Get(raw []byte, decode func(raw []byte) (*Resource, error)) (*Resource, error) {
	c.mu.RLock()
	r, young := c.young[string(raw)]
	if !young {
		r = c.old[string(raw)]
	}
	c.mu.RUnlock()
	if young {
		return r, nil
	}
	if r == nil {
		var err error
		if r, err = decode(raw); err != nil {
			return nil, err
		}
	}
	if len(raw) <= maxRaw {
		c.keep(raw, r)
	}
	return r, nil
}

// keep enters r into the young generation.
func (c *ResourceCache) keep(raw []byte, r *Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= generationEntries || c.youngSize > generationBytes {
		c.old, c.young, c.youngSize = c.young, nil, 0
	}
	if c.young == nil {
		c.young = map[string]*Resource{}
	}
	if _, known := c.young[string(raw)]; !known {
		c.young[string(raw)] = r
		c.youngSize += len(raw) + len(r.packed)
	}
}

// Len returns how many resources are remembered.
func (c *ResourceCache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.young) + len(c.old)
}
