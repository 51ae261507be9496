package keda

import (
	"fmt"
	"math"

	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trimtab/trimtab"
)

// maxMetadata bounds the keys that a trigger may have.
const maxMetadata = 100

// request is KEDA's request: a ScaledObjectRef, or a GetMetricsRequest, which contains one.
type request struct {
	name, namespace string
	metadata        map[string]string
	// metric is asked for by GetMetrics alone.
	metric string
	// nested says that it is a GetMetricsRequest.
	nested bool
	// fault is why it cannot be decoded. As an error of the codec, gRPC would answer INTERNAL.
	fault error
}

// text calls f with each field of a message that is text, bytes or a message.
func text(b []byte, f func(field protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return trimtab.Invalidf("read protobuf: malformed tag")
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return trimtab.Invalidf("read protobuf: malformed field %d", field)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if err := f(field, value); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// decode reads the request.
func (r *request) decode(b []byte) error {
	if !r.nested {
		return text(b, r.reference)
	}
	return text(b, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			return text(value, r.reference)
		case 2:
			r.metric = string(value)
		}
		return nil
	})
}

// reference takes one field of a ScaledObjectRef.
func (r *request) reference(field protowire.Number, value []byte) error {
	switch field {
	case 1:
		r.name = string(value)
	case 2:
		r.namespace = string(value)
	case 3:
		if len(r.metadata) >= maxMetadata {
			return trimtab.Invalidf("read metadata of a trigger: more than %d keys", maxMetadata)
		}
		var k, v string
		err := text(value, func(field protowire.Number, value []byte) error {
			switch field {
			case 1:
				k = string(value)
			case 2:
				v = string(value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if r.metadata == nil {
			r.metadata = map[string]string{}
		}
		r.metadata[k] = v
	}
	return nil
}

// isActive is an encoded IsActiveResponse.
func isActive(active bool) answer {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), protowire.EncodeBool(active))
}

// value encodes a MetricSpec or MetricValue, which have the same fields, in its response. Older
// versions of KEDA read the whole number; newer ones prefer the float where it is over 0.
func value(x float64) answer {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), metricName)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(math.Ceil(x)))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 3, protowire.Fixed64Type), math.Float64bits(x))
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
}

// answer is an encoded response.
type answer []byte

// codec reads requests and passes answers on.
type codec struct{}

// Name is protobuf, the encoding on the wire.
func (codec) Name() string { return proto.Name }

// Unmarshal reads a request.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*request)
	if !ok {
		return fmt.Errorf("read protobuf: %T: %w", v, trimtab.ErrUnsupported)
	}
	r.fault = r.decode(data.Materialize())
	return nil
}

// Marshal passes an answer on.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(answer)
	if !ok {
		return nil, fmt.Errorf("write protobuf: %T: %w", v, trimtab.ErrUnsupported)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}
