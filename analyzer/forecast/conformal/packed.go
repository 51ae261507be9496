package conformal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// Floats are written as the bytes of their values, little-endian: smaller
// than numerals, with the same bits, and NaN has a form.
type Floats []float64

// MarshalJSON writes base64.
func (v Floats) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 8*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what [Floats.MarshalJSON] wrote.
func (v *Floats) UnmarshalJSON(b []byte) error {
	raw, err := unpack(b, 8)
	if err != nil {
		return err
	}
	*v = (*v)[:0]
	for ; len(raw) > 0; raw = raw[8:] {
		*v = append(*v, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
	}
	return nil
}

// Singles are [Floats] of half the size.
type Singles []float32

// MarshalJSON writes base64.
func (v Singles) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what [Singles.MarshalJSON] wrote.
func (v *Singles) UnmarshalJSON(b []byte) error {
	raw, err := unpack(b, 4)
	if err != nil {
		return err
	}
	*v = (*v)[:0]
	for ; len(raw) > 0; raw = raw[4:] {
		*v = append(*v, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return nil
}

func unpack(b []byte, size int) ([]byte, error) {
	var raw []byte
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("read packed values: %w", err)
	}
	if len(raw)%size != 0 {
		return nil, fmt.Errorf("read packed values: %d bytes are not values of %d", len(raw), size)
	}
	return raw, nil
}
