package zipkin

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// half is one side of a call in version 1, from the annotations of its service.
type half struct {
	kind trimtab.SpanKind
	// from and to are when it began and ended, in nanoseconds.
	from, to        int64
	begun, finished bool
	service         []byte
}

// The halves that a span may have.
const (
	clientHalf = iota
	serverHalf
	producerHalf
	consumerHalf
	halves
)

// version1 is a span of version 1 while it is read. In that format a span has no kind and
// no service: annotations have the times of both sides, each with the endpoint that noted
// it, and binary annotations the tags.
//
//	{"traceId", "id", "parentId", "timestamp" µs, "duration" µs,
//	  "annotations": [{"timestamp", "value": "cs", "endpoint": {"serviceName", "ipv4", "port"}}],
//	  "binaryAnnotations": [{"key", "value", "endpoint"}]}
//
// Source: Zipkin API v1 (zipkin-api.yaml); zipkin, V1SpanConverter.
type version1 struct {
	span
	sides [halves]half
	// local is the service of any annotation.
	local []byte
}

// scanVersion1 packs a span for each side of it, or rejects it.
func scanVersion1(v jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	s := version1{}
	var trace, id, parent, annotations, tags jsonvalue.Value
	for key, m := range v.Fields() {
		switch string(key) {
		case "traceId":
			trace = m
		case "id":
			id = m
		case "parentId":
			parent = m
		case "timestamp":
			s.Start, s.timed = m.Thousandfold()
		case "duration":
			s.duration, s.lasted = m.Thousandfold()
		case "annotations":
			annotations = m
		case "binaryAnnotations":
			tags = m
		}
	}
	if s.identify(trace, id, parent, p) {
		for a := range annotations.Elements() {
			s.annotate(a)
		}
		s.pack(tags, cache, p)
	}
	return nil
}

// annotate reads an annotation.
func (s *version1) annotate(a jsonvalue.Value) {
	service := a.Member("endpoint").Member("serviceName").Raw()
	if s.local == nil {
		s.local = service
	}
	var which int
	end := false
	switch string(a.Member("value").Raw()) {
	case "cs":
		which = clientHalf
	case "cr":
		which, end = clientHalf, true
	case "sr":
		which = serverHalf
	case "ss":
		which, end = serverHalf, true
	case "ms":
		which = producerHalf
	case "mr":
		which = consumerHalf
	default:
		return
	}
	side := &s.sides[which]
	side.kind = [halves]trimtab.SpanKind{trimtab.SpanClient, trimtab.SpanServer, trimtab.SpanProducer, trimtab.SpanConsumer}[which]
	if len(service) > 0 {
		side.service = service
	}
	at, ok := a.Member("timestamp").Thousandfold()
	if end {
		side.to, side.finished = at, ok
	} else {
		side.from, side.begun = at, ok
	}
}

// pack adds a span for each recorded side, or one for its service if there is none. The span's
// own times are those of the side that began it: the client, if there is one.
func (s *version1) pack(tags jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) {
	whole, packed := s.span, false
	for which, side := range s.sides {
		if side.kind == trimtab.SpanUnspecified {
			continue
		}
		own := whole
		own.Kind, own.service, own.peer = side.kind, side.service, p.Peer()
		if packed || !own.timed || which == serverHalf && !own.lasted {
			own.Start, own.timed = side.from, side.begun
			own.duration, own.lasted = side.to-side.from, side.begun && side.finished
		} else if !own.lasted {
			own.duration, own.lasted = side.to-side.from, side.begun && side.finished
		}
		own.shared = which == serverHalf && s.sides[clientHalf].kind != trimtab.SpanUnspecified
		own.tagsOf(tags)
		own.pack(cache, p)
		packed = true
	}
	if !packed {
		whole.peer = p.Peer()
		if whole.service = whole.tagsOf(tags); whole.service == nil {
			whole.service = s.local
		}
		whole.pack(cache, p)
	}
}

// tagsOf reads binary annotations, and returns the service of the first of them.
func (s *span) tagsOf(tags jsonvalue.Value) (service []byte) {
	for tag := range tags.Elements() {
		key, endpoint := tag.Member("key").Raw(), tag.Member("endpoint")
		name := endpoint.Member("serviceName").Raw()
		switch value := tag.Member("value"); {
		case string(key) == "sa":
			if s.Kind == trimtab.SpanClient || s.Kind == trimtab.SpanProducer {
				s.takeRemote(endpoint)
			}
		case string(key) == "ca" || string(key) == "ma":
		case value.Raw() != nil:
			if service == nil {
				service = name
			}
			if s.service == nil || len(name) == 0 || string(name) == string(s.service) {
				s.tag(key, value.Raw())
			}
		}
	}
	return service
}
