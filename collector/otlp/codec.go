package otlp

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // senders may compress
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/trimtab/trimtab/collector"
)

// codec scans export requests straight from the transport's buffers. Other
// services on the same server get what they are generated for.
type codec struct {
	other encoding.CodecV2
	pool  mem.BufferPool
}

func newCodec() codec {
	return codec{other: encoding.GetCodecV2(proto.Name), pool: mem.DefaultBufferPool()}
}

// call is an export request while it is served.
type call struct {
	cache  *collector.ResourceCache
	packer *collector.Packer
	// err is why the body is malformed; gRPC would make INTERNAL of it.
	err error
}

// answer is an encoded response.
type answer []byte

// generated is implemented by the types of gogo/protobuf.
type generated interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func (c codec) Name() string { return proto.Name }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *call:
		body := data.MaterializeToBuffer(c.pool)
		defer body.Free()
		v.err = ScanRequest(body.ReadOnlyData(), v.cache, v.packer)
		return nil
	case generated:
		if err := v.Unmarshal(data.Materialize()); err != nil {
			return fmt.Errorf("read %T: %w", v, err)
		}
		return nil
	}
	return c.other.Unmarshal(data, v)
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case answer:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case generated:
		b, err := v.Marshal()
		if err != nil {
			return nil, fmt.Errorf("write %T: %w", v, err)
		}
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.other.Marshal(v)
}
