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
			for key, tag := range m.Members() {
				text, ok := tag.Text()
				if key == "error" && ok && text != "false" {
					z.span.Flags |= trimtab.FlagError
				}
				collector.ApplyAttribute(&z.span, key, text)
			}
		}
	}
	z.span.Start = nanoseconds(z.span.Start)
	if timed && lasted {
		z.span.End = endOf(z.span.Start, nanoseconds(duration))
	}
	return z
}

// family is the spans that share one id.
type family struct {
	// members are in an order that does not depend on the file: clients
	// first, then by service and time. The first keeps the id.
	members []int
	// parents says who is the parent of a child of that service.
	parents map[string]int
	// other is the parent of all other children: the first server, else the
	// first member.
	other int
}

// separate gives each span an id of its own, and children the right parent.
func separate(spans []zipkinSpan) {
	families := map[zipkinID]*family{}
	for i := range spans {
		id := zipkinID{spans[i].span.TraceID, spans[i].span.SpanID}
		if id.span == [8]byte{} {
			continue // it will be rejected, and a zero parent is no parent
		}
		if families[id] == nil {
			families[id] = &family{}
		}
		families[id].members = append(families[id].members, i)
	}
	for _, f := range families {
		f.settle(spans)
	}
	// A child finds its parent by the id as it came, so all parents are found
	// before any id changes.
	parents := make([]int, len(spans))
	for i := range spans {
		parents[i] = -1
		if f := families[zipkinID{spans[i].span.TraceID, spans[i].span.Parent}]; f != nil {
			parents[i] = f.parentFor(spans[i].service)
		}
	}
	for _, f := range families {
		f.rename(spans, parents)
	}
	for i, parent := range parents {
		if parent >= 0 {
			spans[i].span.Parent = spans[parent].span.SpanID
		}
	}
}

// settle puts the members in order and notes who is whose parent: the first
// server of a service, else the first member of it.
func (f *family) settle(spans []zipkinSpan) {
	late := func(i int) int {
		if spans[i].server() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(f.members, func(a, b int) int {
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(spans[a].service, spans[b].service),
			cmp.Compare(spans[a].span.Start, spans[b].span.Start), cmp.Compare(spans[a].span.End, spans[b].span.End))
	})
	f.other = f.members[0]
	if len(f.members) == 1 {
		return
	}
	f.parents = map[string]int{}
	for _, i := range f.members {
		known, found := f.parents[spans[i].service]
		if !found || late(i) > late(known) {
			f.parents[spans[i].service] = i
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
func (f *family) rename(spans []zipkinSpan, parents []int) {
	first := f.members[0]
	shared := spans[first].span.SpanID
	for n, i := range f.members[1:] {
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
