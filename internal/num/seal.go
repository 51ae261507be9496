package num

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrSeal says that the bytes are not an undamaged snapshot of the wanted kind.
var ErrSeal = errors.New("not an undamaged snapshot")

// Seal returns v as JSON behind a header with its kind and checksum. Floats keep their exact
// bits.
func Seal(kind string, v any) ([]byte, error) {
	state, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", kind, err)
	}
	return append(header(kind, state), state...), nil
}

// Unseal reads what [Seal] wrote into v. The error is [ErrSeal] when kind or
// checksum differ; v is then untouched.
func Unseal(kind string, b []byte, v any) error {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return fmt.Errorf("unseal %s: no header: %w", kind, ErrSeal)
	}
	state := b[end+1:]
	if !bytes.Equal(b[:end+1], header(kind, state)) {
		return fmt.Errorf("unseal %s: header %.60q: %w", kind, b[:end], ErrSeal)
	}
	if err := json.Unmarshal(state, v); err != nil {
		return fmt.Errorf("unseal %s: %w: %w", kind, ErrSeal, err)
	}
	return nil
}

func header(kind string, state []byte) []byte {
	return fmt.Appendf(nil, "trimtab %s %08x\n", kind, crc32.ChecksumIEEE(state))
}
