package otlp

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trimtab/trimtab"
)

// Why a body was refused.
var (
	errTooLarge = errors.New("body too large")
	errEncoding = errors.New("content encoding not supported, use gzip or none")
	errNoRoom   = errors.New("too many request bodies are held")
)

// bodies reads request bodies into buffers that are used again, and bounds
// each of them and their sum.
type bodies struct {
	max     int
	maxHeld int64
	held    atomic.Int64
	buffers sync.Pool
	gzips   sync.Pool
}

// body is one request body; held is the part of the limit that it uses.
type body struct {
	data []byte
	held int64
}

// firstBuffer is a client's buffer before it has sent anything; it doubles as bytes arrive, so
// that an announced length alone costs nothing.
const firstBuffer = 4 << 10

// keptBuffer is the largest size of a buffer that is reused, in bytes.
const keptBuffer = 1 << 20

// read returns the decompressed body. A body that is returned must be freed,
// also next to an error.
func (b *bodies) read(rw http.ResponseWriter, r *http.Request) (*body, error) {
	limited := http.MaxBytesReader(rw, r.Body, int64(b.max))
	var in io.Reader = limited
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		if r.ContentLength > int64(b.max) {
			return nil, fmt.Errorf("%w: %d bytes, limit %d", errTooLarge, r.ContentLength, b.max)
		}
	case "gzip":
		z, err := b.gunzip(limited)
		if err != nil {
			return nil, b.explain(err)
		}
		defer b.gzips.Put(z)
		in = z
	default:
		return nil, fmt.Errorf("%w: %.40q", errEncoding, encoding)
	}
	out, _ := b.buffers.Get().(*body)
	if out == nil {
		out = &body{data: make([]byte, 0, firstBuffer)}
	}
	out.data = out.data[:0]
	if !b.hold(out, int64(cap(out.data))) {
		return out, errNoRoom
	}
	return out, b.fill(out, in)
}

// gunzip returns a reader of a gzip stream.
func (b *bodies) gunzip(in io.Reader) (*gzip.Reader, error) {
	if z, ok := b.gzips.Get().(*gzip.Reader); ok {
		return z, z.Reset(in)
	}
	return gzip.NewReader(in)
}

// fill reads in to its end, growing out within the bounds.
func (b *bodies) fill(out *body, in io.Reader) error {
	for {
		if len(out.data) == cap(out.data) {
			size := min(2*cap(out.data), b.max+1) // one byte more than allowed shows that a body is too long
			if !b.hold(out, int64(size)) {
				return errNoRoom
			}
			out.data = append(make([]byte, 0, size), out.data...)
		}
		n, err := in.Read(out.data[len(out.data):cap(out.data)])
		out.data = out.data[:len(out.data)+n]
		switch {
		case len(out.data) > b.max:
			return fmt.Errorf("%w: over %d bytes", errTooLarge, b.max)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return b.explain(err)
		}
	}
}

// explain converts a read error into one that says what the client did wrong.
func (b *bodies) explain(err error) error {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return fmt.Errorf("%w: over %d bytes", errTooLarge, b.max)
	}
	return fmt.Errorf("read body: %w: %w", trimtab.ErrInvalid, err)
}

// hold sets out's share of the bound to n bytes.
func (b *bodies) hold(out *body, n int64) bool {
	more := n - out.held
	if b.held.Add(more) > b.maxHeld {
		b.held.Add(-more)
		return false
	}
	out.held = n
	return true
}

// free gives a body back.
func (b *bodies) free(out *body) {
	b.held.Add(-out.held)
	out.held = 0
	if cap(out.data) <= keptBuffer {
		b.buffers.Put(out)
	}
}
