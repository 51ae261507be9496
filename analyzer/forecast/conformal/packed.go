package conformal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// packed floats are written as the bytes of their values, little-endian: smaller than numerals, with
// the same bits, and NaN has a form.
type packed[T float32 | float64] []T

// Floats and Singles are packed floats of 8 and of 4 bytes.
type (
	Floats  = packed[float64]
	Singles = packed[float32]
)

// MarshalJSON writes base64.
func (v packed[T]) MarshalJSON() ([]byte, error) {
	out, err := binary.Append(make([]byte, 0, binary.Size([]T(v))), binary.LittleEndian, []T(v))
	if err != nil {
		return nil, fmt.Errorf("pack values: %w", err)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *packed[T]) UnmarshalJSON(b []byte) error {
	var raw []byte
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("read packed values: %w", err)
	}
	size := binary.Size(T(0))
	if len(raw)%size != 0 {
		return fmt.Errorf("read packed values: %d bytes are not values of %d", len(raw), size)
	}
	*v = make([]T, len(raw)/size)
	if _, err := binary.Decode(raw, binary.LittleEndian, []T(*v)); err != nil {
		return fmt.Errorf("read packed values: %w", err)
	}
	return nil
}
