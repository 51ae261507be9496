// Package spantest replaces the bus in tests of the collector: it accepts span frames and keeps
// their spans. It carries nothing else.
package spantest

import (
	"context"
	"errors"
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

// Bus is a bus.Bus for span frames. The zero value is ready.
type Bus struct {
	// Handle, when set, decides over each frame before it is kept.
	Handle func(ctx context.Context, f *trimtab.SpanFrame) error

	mu     sync.Mutex
	frames []*trimtab.SpanFrame
}

// Publish keeps a valid frame that Handle let pass.
func (b *Bus) Publish(ctx context.Context, v trimtab.Value) error {
	f, ok := v.(*trimtab.SpanFrame)
	if !ok {
		return trimtab.Invalidf("spantest: a %T", v)
	}
	if err := f.Validate(); err != nil {
		return err
	}
	if b.Handle != nil {
		if err := b.Handle(ctx, f); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = append(b.frames, f)
	return nil
}

// Frames returns the frames that were kept.
func (b *Bus) Frames() []*trimtab.SpanFrame {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*trimtab.SpanFrame(nil), b.frames...)
}

// Spans returns the spans that were kept, in order.
func (b *Bus) Spans() []Span { return Unpack(b.Frames()) }

var errNotHere = errors.New("spantest: only Publish is here")

// Subscribe is not here.
func (b *Bus) Subscribe(context.Context, bus.Subscription) (func(), error) { return nil, errNotHere }

// Bucket is not here.
func (b *Bus) Bucket(context.Context, string) (bus.Bucket, error) { return nil, errNotHere }

// Stats is empty.
func (b *Bus) Stats() bus.Stats { return bus.Stats{} }

// Queues returns nothing.
func (b *Bus) Queues(context.Context) (bus.Queues, error) { return bus.Queues{}, nil }

// Close does nothing.
func (b *Bus) Close() error { return nil }

// Span is a span with its resource and peer looked up and their indexes forgotten.
type Span struct {
	trimtab.Span
	Attrs  map[string]string
	Callee string
}

// Unpack reads frames; it panics on one that is not valid.
func Unpack(frames []*trimtab.SpanFrame) []Span {
	var all []Span
	for _, f := range frames {
		r, err := codec.ReadFrame(f.Data)
		if err != nil {
			panic(err)
		}
		var resources []map[string]string
		var peers [][]string
		r.Resources(func(_ int, packed []byte) bool {
			if of, name, ok := codec.UnpackPeer(packed); ok {
				peers[of] = append(peers[of], string(name))
			}
			attrs := map[string]string{}
			for _, a := range codec.UnpackResource(packed) {
				attrs[a.Key] = a.Value
			}
			resources, peers = append(resources, attrs), append(peers, []string{""})
			return true
		})
		for s := (trimtab.Span{}); r.Next(&s); {
			out := Span{Span: s, Attrs: resources[s.Resource], Callee: peers[s.Resource][s.Peer]}
			out.Resource, out.Peer = 0, 0
			all = append(all, out)
		}
	}
	return all
}
