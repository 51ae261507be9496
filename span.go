package trimtab

import "strconv"

// SpanKind is the role of a span, with the numbers of OTLP.
type SpanKind uint8

// The span kinds of OTLP.
const (
	SpanUnspecified SpanKind = iota
	SpanInternal
	SpanServer
	SpanClient
	SpanProducer
	SpanConsumer
)

// Flags of a [Span].
const (
	// FlagError: the span's status is an error.
	FlagError uint8 = 1 << iota
	// FlagAdjusted: Adjusted was read from a sampler's record, a tracestate or attributes;
	// without it Adjusted is 1 and the true rate may be higher.
	FlagAdjusted
	// FlagFollowsFrom: its parent did not wait for it (FOLLOWS_FROM of OpenTracing).
	FlagFollowsFrom
	// FlagReceive: it waited for messages, or confirmed them, and processed none.
	FlagReceive
)

// Span is one timed operation, reduced to what the analysis reads. It holds
// no pointers, so that millions of them cost the garbage collector nothing.
type Span struct {
	TraceID [16]byte
	SpanID  [8]byte
	// Parent is zero for the root of a trace.
	Parent [8]byte
	// Start and End are Unix nanoseconds. End < Start is kept as received: the analyzer flags and
	// counts it.
	Start, End int64
	// Adjusted is how many spans this one stands for under sampling, >= 1.
	Adjusted float32
	// Resource is the index of the frame's resource that sent it.
	Resource uint16
	Kind     SpanKind
	Flags    uint8
	// Peer numbers the peer that the span calls, from 1, among those that the frame names for its
	// resource; 0: unknown.
	Peer uint8
}

// Serves reports whether the span is of a request that was served: a call that was
// answered, or a message that was processed.
func (s *Span) Serves() bool {
	return s.Kind == SpanServer || s.Kind == SpanConsumer && s.Flags&FlagReceive == 0
}

// Calls reports whether the span is of a call, or of sending a message.
func (s *Span) Calls() bool { return s.Kind == SpanClient || s.Kind == SpanProducer }

// OwnAttribute marks, in the resource, the spans that trimtab writes about its own decisions. A
// site's collector may send them back: they are no requests, and no service is discovered from
// them.
const OwnAttribute = "trimtab.own"

// Attr is one resource attribute: service.name and the like.
type Attr struct{ Key, Value string }

// SpanFrame is a packed batch of spans of one partition. Package codec packs, checks and reads
// it, and refuses one without Data.
type SpanFrame struct {
	// Partition is chosen by trace id: all spans of a trace share it.
	Partition int
	// Data is the packed frame. It is not copied.
	Data []byte
}

// Kind returns KindSpans.
func (f *SpanFrame) Kind() Kind { return KindSpans }

// Key returns the partition in decimal.
func (f *SpanFrame) Key() string { return strconv.Itoa(f.Partition) }

// Validate checks the partition. The content is checked where it is encoded and where it is read.
func (f *SpanFrame) Validate() error {
	if f.Partition < 0 {
		return Invalidf("span frame: partition %d", f.Partition)
	}
	return nil
}
