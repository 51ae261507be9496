package natsbus

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

const (
	// headerEncoding names the compression of a stored message; without it, the data are not
	// compressed.
	headerEncoding = "Content-Encoding"
	encodingS2     = "s2"
	// packFrom is the size from which a message is compressed, in bytes.
	packFrom = 1 << 10
	// maxUnpacked is the largest decompressed size of a message, in bytes.
	maxUnpacked = codec.MaxBytes
)

// alone reports whether no other process can reach the bus. It then compresses what it stores,
// since no other program reads it.
func (c *Config) alone() bool { return c.URL == "" && c.Listen == "" }

// pack compresses the data of a message if that makes it smaller. A plan of 100 workloads takes a
// sixth of its size and 13 us.
func pack(m *nats.Msg) {
	if len(m.Data) < packFrom || len(m.Data) > maxUnpacked {
		return
	}
	if packed := s2.Encode(nil, m.Data); len(packed) < len(m.Data) {
		m.Data = packed
		m.Header.Set(headerEncoding, encodingS2)
	}
}

// unpack returns the data that a message was stored with.
func unpack(h nats.Header, data []byte) ([]byte, error) {
	n, err := unpackedLen(h, data)
	if err != nil || h.Get(headerEncoding) == "" {
		return data, err
	}
	out, err := s2.Decode(make([]byte, n), data)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w: %w", trimtab.ErrInvalid, err)
	}
	return out, nil
}

// unpackedLen returns how many bytes [unpack] returns.
func unpackedLen(h nats.Header, data []byte) (int, error) {
	switch encoding := h.Get(headerEncoding); encoding {
	case "":
		return len(data), nil
	case encodingS2:
		n, err := s2.DecodedLen(data)
		if err != nil || n > maxUnpacked {
			return 0, trimtab.Invalidf("unpack: %d bytes that hold %d, limit %d", len(data), n, maxUnpacked)
		}
		return n, nil
	default:
		return 0, trimtab.Invalidf("unpack: encoding %.40q is not known", encoding)
	}
}
