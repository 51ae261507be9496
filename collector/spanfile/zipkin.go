package spanfile

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/trimtab/trimtab"
)

// server reports whether a span may be the second one with its id.
func server(s *trimtab.Span) bool {
	return s.Kind == trimtab.SpanServer || s.Kind == trimtab.SpanConsumer
}

// zipkinID identifies a span in Zipkin.
type zipkinID struct {
	trace [16]byte
	span  [8]byte
}

// family is the spans that share one id.
type family struct {
	// members are in an order independent of the file: clients first, then by service and time.
	// The first keeps the id.
	members []int
	// parents says who is the parent of a child of that service.
	parents map[string]int
	// other is the parent of all other children: the first server, else the
	// first member.
	other int
}

// separate gives each of Zipkin's spans an id of its own, and children the
// right parent.
func (r *Reader) separate(spans []held) {
	families := map[zipkinID]*family{}
	for i := range spans {
		s := &spans[i]
		if !s.zipkin {
			continue
		}
		id := zipkinID{s.TraceID, s.SpanID}
		if families[id] == nil {
			families[id] = &family{}
		}
		families[id].members = append(families[id].members, i)
	}
	for _, f := range families {
		r.settle(spans, f)
	}
	// A child finds its parent by the id as it came, so all parents are found
	// before any id changes.
	parents := map[int]int{}
	for i := range spans {
		s := &spans[i]
		if f := families[zipkinID{s.TraceID, s.Parent}]; s.zipkin && f != nil {
			parents[i] = f.parentFor(r.senders[s.sender].service)
		}
	}
	for _, f := range families {
		rename(spans, f, parents)
	}
	for i, parent := range parents {
		spans[i].Parent = spans[parent].SpanID
	}
}

// settle sorts the members and records the parent for each service: its first server, else its
// first member.
func (r *Reader) settle(spans []held, f *family) {
	service := func(i int) string { return r.senders[spans[i].sender].service }
	late := func(i int) int {
		if server(&spans[i].Span) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(f.members, func(a, b int) int {
		x, y := &spans[a], &spans[b]
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(service(a), service(b)), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
	})
	f.other = f.members[0]
	if len(f.members) == 1 {
		return
	}
	f.parents = map[string]int{}
	for _, i := range f.members {
		known, found := f.parents[service(i)]
		if !found || late(i) > late(known) {
			f.parents[service(i)] = i
		}
		if late(i) > late(f.other) {
			f.other = i
		}
	}
}

// parentFor returns the parent of a child of the given service.
func (f *family) parentFor(service string) int {
	if i, ok := f.parents[service]; ok {
		return i
	}
	return f.other
}

// rename gives all members but the first a new id; servers become children of
// a client that is the first.
func rename(spans []held, f *family, parents map[int]int) {
	first := f.members[0]
	shared := spans[first].SpanID
	for n, i := range f.members[1:] {
		spans[i].SpanID = derive(shared, uint64(n+1))
		if server(&spans[i].Span) && !server(&spans[first].Span) {
			parents[i] = first
		}
	}
}

// derive returns the n-th id made of a shared one, never zero.
func derive(id [8]byte, n uint64) (out [8]byte) {
	x := binary.BigEndian.Uint64(id[:]) + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64: a bijection
	x = (x ^ x>>27) * 0x94d049bb133111eb
	if x ^= x >> 31; x == 0 {
		x = 1
	}
	binary.BigEndian.PutUint64(out[:], x)
	return out
}
