package otlp

import (
	"sync"

	_ "google.golang.org/grpc/encoding/gzip" // senders may compress
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/trimtab/trimtab/collector"
)

// codec scans requests straight from the transport's buffers, and passes encoded responses on.
type codec struct {
	// joined has buffers in which the pieces of a body are joined. gRPC's own pools clear a whole
	// MiB for a body of 40 KiB.
	joined *sync.Pool
}

func newCodec() codec {
	return codec{&sync.Pool{New: func() any { return new([]byte) }}}
}

// call is a request of a [Service] while it is served.
type call struct {
	service *Service
	packer  *collector.Packer
	// err is why the body is malformed. As an error of the codec, gRPC would answer INTERNAL.
	err error
}

func (c *call) scan(body []byte) { c.err = c.service.Scan(body, &c.service.cache, c.packer) }

func (c codec) Name() string { return proto.Name }

// Unmarshal joins the parts of data, if several, and scans them into a *call.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	to := v.(*call)
	if len(data) == 1 {
		to.scan(data[0].ReadOnlyData())
		return nil
	}
	joined := c.joined.Get().(*[]byte)
	size := data.Len()
	if cap(*joined) < size {
		*joined = make([]byte, size+size/4)
	}
	*joined = (*joined)[:size]
	data.CopyTo(*joined)
	to.scan(*joined)
	if cap(*joined) <= keptBuffer {
		c.joined.Put(joined)
	}
	return nil
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
