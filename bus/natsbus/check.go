package natsbus

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// nats-server trusts the state files of its consumers. They have no checksum, and the server
// allocates as much memory as a count in the file says. One flipped bit made it allocate 17 GB, or
// count for hours. So this package reads the files first, with bounds, and deletes invalid ones.
// Their consumers then start again at the beginning of the stream, which is safe because handlers
// are idempotent.
//
// The messages have checksums, which the server compares at its start only where there is no
// index.db, the index of a stream. With one it believes the index, and finds a damaged message when
// it wants to remove it: from then on nothing can be written to the stream, and after a restart
// neither. So this package deletes the indexes. The server builds them again from the valid
// messages in the blocks, at the speed of the disk.
//
// The files that describe a stream or a consumer (meta.inf) have a checksum.
// Files that are longer than any of their kind can be are refused: they are read
// as a whole.

const (
	// maxMeta bounds a file that describes a stream or a consumer; 1 KiB is
	// typical.
	maxMeta = 256 << 10
	// maxState bounds the state of one consumer; ours have one message out at a
	// time, which takes under 100 bytes.
	maxState = 1 << 20
	// maxBlock bounds a file of messages or its index: nats-server begins a new
	// block at 8 MiB, after at most one message more.
	maxBlock = 64 << 20
)

// checkStore removes, below dir, the consumers with an invalid state, which it returns, and the
// indexes of all streams. An error means that no server can have left the store like this.
func checkStore(dir string) (removed []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a store that is new, or a directory that was just removed
		}
		if err != nil || e.IsDir() {
			return err
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("check bus store: %s is no file", path)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch consumer := consumerOf(path); {
		case consumer != "":
			if why := checkConsumer(path, info.Size()); why != nil {
				removed = append(removed, fmt.Sprintf("%s: %v", consumer, why))
				if err := os.RemoveAll(consumer); err != nil {
					return err
				}
				return fs.SkipDir // its other files are gone as well
			}
		case info.Size() > maxBlock || info.Size() > maxMeta && strings.HasPrefix(e.Name(), "meta."):
			return fmt.Errorf("check bus store: %s has %d bytes", path, info.Size())
		case e.Name() == "index.db":
			return os.Remove(path)
		}
		return nil
	})
	return removed, err
}

// consumerOf returns the directory of the consumer that a file is of, "" when
// it is of none: …/streams/STREAM/obs/CONSUMER/FILE.
func consumerOf(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) != "obs" {
		return ""
	}
	return dir
}

// checkConsumer reads one file of a consumer.
func checkConsumer(path string, size int64) error {
	if size > maxState {
		return fmt.Errorf("%s has %d bytes", filepath.Base(path), size)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch filepath.Base(path) {
	case "o.dat":
		return checkState(b, time.Now())
	case "meta.inf":
		// The server compares the checksum, and leaves out a consumer where it
		// is wrong, directory and all: then no other can be made in its place.
		// The same holds where it cannot read a setting, as a policy with a flipped bit.
		var meta server.FileConsumerInfo
		if err := json.Unmarshal(b, &meta); err != nil {
			return fmt.Errorf("read meta.inf: %w", err)
		}
	}
	return nil
}

// checkState reads the state of a consumer as the server writes it, in
// variable-length integers:
//
//	magic (1 byte) version (1 byte)
//	acknowledged: of the consumer, of the stream; delivered: the same
//	n [time, n × (sequence, sequence of the consumer, time)]   not acknowledged
//	n [n × (sequence, count)]                                  delivered again
//
// Nothing may follow, no count may be larger than what follows it can hold, and
// what is not acknowledged was delivered, and before now: it comes again when
// AckWait is over, and until then nothing else does.
func checkState(b []byte, now time.Time) error {
	const magic, version, counts = 22, 2, 1 << 62
	const ahead = 10 * time.Second // a clock may have been set back a little
	if len(b) == 0 {
		return nil // nothing was ever delivered
	}
	if len(b) < 2 || b[0] != magic || b[1] != version {
		return errors.New("o.dat begins with no magic number")
	}
	r := bytes.NewReader(b[2:])
	var bad error
	number := func() uint64 {
		n, err := binary.ReadUvarint(r)
		if err != nil && bad == nil {
			bad = fmt.Errorf("read o.dat: %w", err)
		}
		return n
	}
	signed := func() int64 {
		n, err := binary.ReadVarint(r)
		if err != nil && bad == nil {
			bad = fmt.Errorf("read o.dat: %w", err)
		}
		return n
	}
	count := func(each uint64) uint64 {
		n := number()
		if n > uint64(r.Len())/each && bad == nil {
			bad = fmt.Errorf("o.dat has %d entries in %d bytes", n, r.Len())
		}
		return n
	}
	_, acked, _, delivered := number(), number(), number(), number()
	if bad == nil && max(acked, delivered) >= counts {
		bad = fmt.Errorf("o.dat acknowledges message %d of %d", acked, delivered)
	}
	if n := count(3); bad == nil && n > 0 {
		base := signed()
		for i := uint64(0); i < n && bad == nil; i++ {
			at := number()
			number()
			if sent := time.Unix(base-signed(), 0); bad == nil && sent.After(now.Add(ahead)) {
				bad = fmt.Errorf("o.dat waits for a message of %v", sent)
			}
			if bad == nil && (at == 0 || acked+at > delivered) {
				bad = fmt.Errorf("o.dat waits for message %d after %d of %d", at, acked, delivered)
			}
		}
	}
	if bad == nil {
		for n := count(2); n > 0 && bad == nil; n-- {
			number()
			number()
		}
	}
	if bad == nil && r.Len() > 0 {
		bad = fmt.Errorf("o.dat has %d bytes too many", r.Len())
	}
	return bad
}
