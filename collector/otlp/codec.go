package otlp

import (
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // senders may compress
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/trimtab/trimtab/collector"
)

// codec scans export requests straight from the transport's buffers. For other services on the same
// server it decodes protobuf messages as usual.
type codec struct {
	other encoding.CodecV2
	// joined has buffers in which the pieces of a body are joined. gRPC's own pools clear a whole
	// MiB for a body of 40 KiB.
	joined *sync.Pool
}

func newCodec() codec {
	return codec{other: encoding.GetCodecV2(proto.Name), joined: &sync.Pool{New: func() any { return new([]byte) }}}
}

// call is an export request while it is served.
type call struct {
	cache  *collector.ResourceCache
	packer *collector.Packer
	// err is why the body is malformed. As an error of the codec, gRPC would answer INTERNAL.
	err error
}

// Scan packs the spans.
func (c *call) Scan(body []byte) { c.err = ScanRequest(body, c.cache, c.packer) }

// Request is a request that decodes itself from its encoded form, which is valid only during the
// call. It keeps errors for the handler, which can then answer INVALID_ARGUMENT where gRPC itself
// would answer INTERNAL. Services of [Config.Register] use it to bound the cost of a request.
type Request interface{ Scan(body []byte) }

// Answer is an encoded response.
type Answer []byte

func (c codec) Name() string { return proto.Name }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if v, ok := v.(Request); ok {
		c.scan(data, v)
		return nil
	}
	return c.other.Unmarshal(data, v)
}

// scan joins the parts of data, if several, for v to read.
func (c codec) scan(data mem.BufferSlice, v Request) {
	if len(data) == 1 {
		v.Scan(data[0].ReadOnlyData())
		return
	}
	joined := c.joined.Get().(*[]byte)
	size := data.Len()
	if cap(*joined) < size {
		*joined = make([]byte, size+size/4)
	}
	*joined = (*joined)[:size]
	data.CopyTo(*joined)
	v.Scan(*joined)
	if cap(*joined) <= keptBuffer {
		c.joined.Put(joined)
	}
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(Answer); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.other.Marshal(v)
}
