package trimtab

import (
	"encoding/json"
	"fmt"
)

// EnvelopeVersion is the version of every JSON kind of this build. A reader
// refuses a higher one and must accept all lower ones.
const EnvelopeVersion = 1

// MaxMessageBytes bounds an encoded value: larger ones are refused by Encode
// and Decode with ErrInvalid.
const MaxMessageBytes = 4 << 20

// Origin identifies one publication: Sequence counts from 1 within an
// Incarnation (one life of the process) of a Source. (Source, Incarnation,
// Sequence) is unique, so a repeated delivery can be told from a new value,
// and a gap in Sequence is a counted loss.
type Origin struct {
	Source      string `json:"source"`
	Incarnation uint64 `json:"incarnation"`
	Sequence    uint64 `json:"sequence"`
}

// Envelope is the JSON form of every kind but spans.
type Envelope struct {
	Kind    Kind            `json:"kind"`
	Version int             `json:"version"`
	Origin  Origin          `json:"origin"`
	Value   json.RawMessage `json:"value"`
}

// Encode validates v and returns its wire form: an [Envelope] as JSON, or for
// a [SpanFrame] its own bytes (whose origin travels in message headers).
func Encode(v Value, o Origin) ([]byte, error) {
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", v.Kind(), err)
	}
	if f, ok := v.(*SpanFrame); ok {
		return f.Data, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", v.Kind(), ErrInvalid, err)
	}
	b, err := json.Marshal(Envelope{Kind: v.Kind(), Version: EnvelopeVersion, Origin: o, Value: raw})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", v.Kind(), err)
	}
	if len(b) > MaxMessageBytes {
		return nil, Invalidf("encode %s: %d bytes, limit %d", v.Kind(), len(b), MaxMessageBytes)
	}
	return b, nil
}

// Decode reads a JSON value of kind want and validates it. Every failure is
// ErrInvalid. Fields that this version does not know are ignored, so that a
// newer publisher can be read. Spans are read with [ReadSpanFrame].
func Decode(want Kind, b []byte) (Value, Origin, error) {
	if len(b) > MaxMessageBytes {
		return nil, Origin{}, Invalidf("decode %s: %d bytes, limit %d", want, len(b), MaxMessageBytes)
	}
	var e Envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, Origin{}, fmt.Errorf("decode %s: %w: %w", want, ErrInvalid, err)
	}
	info, ok := InfoOf(want)
	switch {
	case !ok || info.Delivery == Local || want == KindSpans:
		return nil, Origin{}, Invalidf("decode %q: no such JSON kind", want)
	case e.Kind != want:
		return nil, e.Origin, Invalidf("decode %s: message is of kind %.40q", want, e.Kind)
	case e.Version < 1 || e.Version > EnvelopeVersion:
		return nil, e.Origin, Invalidf("decode %s: version %d, this build reads 1 to %d", want, e.Version, EnvelopeVersion)
	}
	v := info.New()
	if len(e.Value) == 0 || string(e.Value) == "null" {
		return nil, e.Origin, Invalidf("decode %s: no value", want)
	}
	if err := json.Unmarshal(e.Value, v); err != nil {
		return nil, e.Origin, fmt.Errorf("decode %s: %w: %w", want, ErrInvalid, err)
	}
	if err := v.Validate(); err != nil {
		return nil, e.Origin, fmt.Errorf("decode %s: %w", want, err)
	}
	return v, e.Origin, nil
}
