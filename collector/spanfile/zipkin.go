package spanfile

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// zipkinSpan is a span with what is needed to tell those of one id apart.
type zipkinSpan struct {
	span    trimtab.Span
	service string
	shared  bool
}

// server tells whether z may be the second span of an id.
func (z *zipkinSpan) server() bool {
	return z.shared || z.span.Kind == trimtab.SpanServer || z.span.Kind == trimtab.SpanConsumer
}

// zipkinID is what Zipkin thinks identifies a span.
type zipkinID struct {
	trace [16]byte
	span  [8]byte
}

// decodeZipkin reads a list of spans, or a list of lists of them:
//
//	[{"traceId", "id", "parentId", "kind", "timestamp" µs, "duration" µs,
//	  "localEndpoint": {"serviceName"}, "shared", "tags": {"error"}}]
func decodeZipkin(v jsonvalue.Value, p *collector.Packer) error {
	spans, err := zipkinSpans(v, nil)
	if err != nil {
		return err
	}
	separate(spans)
	resources := map[string]*collector.Resource{}
	for i := range spans {
		z := &spans[i]
		r := resources[z.service]
		if r == nil {
			r = collector.NewResource([]trimtab.Attr{{Key: "service.name", Value: z.service}})
			if z.service == "" {
				r = collector.NewResource(nil)
			}
			resources[z.service] = r
		}
		p.SetResource(r)
		p.Add(&z.span)
	}
	return nil
}

// zipkinSpans appends the spans of v, a list.
func zipkinSpans(v jsonvalue.Value, spans []zipkinSpan) ([]zipkinSpan, error) {
	for e := range v.Elements() {
		switch {
		case e.IsObject():
			spans = append(spans, zipkinOne(e))
		case e.IsArray():
			for inner := range e.Elements() {
				if !inner.IsObject() {
					return nil, trimtab.Invalidf("Zipkin span: %.40q", []byte(inner))
				}
				spans = append(spans, zipkinOne(inner))
			}
		default:
			return nil, trimtab.Invalidf("Zipkin span: %.40q", []byte(e))
		}
	}
	return spans, nil
}

func zipkinOne(v jsonvalue.Value) zipkinSpan {
	z := zipkinSpan{span: trimtab.Span{Adjusted: 1}}
	var duration int64
	timed, lasted := false, false
	for key, m := range v.Members() {
		switch key {
		case "traceId":
			hexID(m, z.span.TraceID[:])
		case "id":
			hexID(m, z.span.SpanID[:])
		case "parentId":
			hexID(m, z.span.Parent[:])
		case "kind":
			kind, _ := m.Text()
			z.span.Kind = collector.KindNamed(strings.ToLower(kind))
		case "timestamp":
			z.span.Start, timed = m.Int()
		case "duration":
			duration, lasted = m.Int()
		case "localEndpoint":
			z.service, _ = m.Member("serviceName").Text()
		case "shared":
			z.shared, _ = m.Bool()
		case "tags":
			if text, ok := m.Member("error").Text(); ok && text != "false" {
				z.span.Flags |= trimtab.FlagError
			}
		}
	}
	z.span.Start = nanoseconds(z.span.Start)
	if timed && lasted {
		z.span.End = endOf(z.span.Start, nanoseconds(duration))
	}
	return z
}

// separate gives each span an id of its own, and children the right parent.
func separate(spans []zipkinSpan) {
	groups := map[zipkinID][]int{}
	for i := range spans {
		id := zipkinID{spans[i].span.TraceID, spans[i].span.SpanID}
		groups[id] = append(groups[id], i)
	}
	// A child finds its parent by the id as it came, so all parents are found
	// before any id changes.
	parents := make([]int, len(spans))
	for i := range spans {
		parents[i] = parentOf(spans, i, groups)
	}
	for _, group := range groups {
		if len(group) > 1 {
			rename(spans, group, parents)
		}
	}
	for i, parent := range parents {
		if parent >= 0 {
			spans[i].span.Parent = spans[parent].span.SpanID
		}
	}
}

// parentOf returns which of the spans with i's parent id is i's parent, or -1
// when there is none: the server of i's service, else the client of it, else
// the first server, else the first at all.
func parentOf(spans []zipkinSpan, i int, groups map[zipkinID][]int) int {
	if spans[i].span.Parent == [8]byte{} {
		return -1
	}
	group := order(spans, groups[zipkinID{spans[i].span.TraceID, spans[i].span.Parent}])
	best, rank := -1, -1
	for _, k := range group {
		r := 0
		if spans[k].server() {
			r++
		}
		if spans[k].service == spans[i].service {
			r += 2
		}
		if r > rank {
			best, rank = k, r
		}
	}
	return best
}

// order returns the spans of one id in an order that does not depend on the
// file: those that keep the id first, then by service and time.
func order(spans []zipkinSpan, group []int) []int {
	if len(group) < 2 {
		return group
	}
	group = slices.Clone(group)
	late := func(i int) int {
		if spans[i].server() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(group, func(a, b int) int {
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(spans[a].service, spans[b].service),
			cmp.Compare(spans[a].span.Start, spans[b].span.Start), cmp.Compare(spans[a].span.End, spans[b].span.End))
	})
	return group
}

// rename gives all spans of one id but the first a new one; servers become
// children of a client that is the first.
func rename(spans []zipkinSpan, group, parents []int) {
	group = order(spans, group)
	first := group[0]
	shared := spans[first].span.SpanID
	for n, i := range group[1:] {
		spans[i].span.SpanID = derive(shared, uint64(n+1))
		if spans[i].server() && !spans[first].server() {
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
