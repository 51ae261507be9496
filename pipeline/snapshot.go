package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Snapshots says where and how often a step's states are kept.
type Snapshots struct {
	// Bucket is the bucket's name; empty: "snapshots".
	Bucket string
	// Every is how often snapshots are saved, in addition to the end; 0: 30 s.
	Every time.Duration
}

const (
	saveTimeout = 5 * time.Second
	// restorePatience is how long a stage waits for a bus that does not answer.
	restorePatience = 20 * time.Second
	snapshotMax     = 7 << 20 // a message of the bus, with room for its headers
)

// saver keeps the states of a step in a bucket: key "stage/name", value as [Seal] writes it. It
// writes only what changed, on its own goroutine, so that a slow bus slows no step. A nil saver
// keeps nothing.
type saver struct {
	Snapshots
	stage  *stage
	bucket bus.Bucket
	queue  chan saving
	done   chan struct{}
	// kept has digests of the bucket's values, as far as this process wrote or read them: the
	// states of two thousand workloads are 100 MiB.
	kept map[string][sha256.Size]byte
}

// saving has what to save: states, or the names of states that are taken one by one.
type saving struct {
	states map[string][]byte
	names  []string
}

// openSaver restores the step and starts saving; nil if nothing is kept.
func (r *stage) openSaver(ctx context.Context) *saver {
	step, ok := r.Step.(trimtab.Snapshotter)
	if r.Snapshots == nil || !ok {
		return nil
	}
	s := &saver{Snapshots: *r.Snapshots, stage: r, queue: make(chan saving, 1), done: make(chan struct{}), kept: map[string][sha256.Size]byte{}}
	if s.Bucket == "" {
		s.Bucket = "snapshots"
	}
	if s.Every <= 0 {
		s.Every = 30 * time.Second
	}
	if err := s.restorePatiently(ctx, step); err != nil {
		r.counts.snapshot("unread")
		r.Logger.Warn("snapshots not restored, starting without", "bucket", s.Bucket, "err", err)
	}
	go s.run()
	return s
}

func (s *saver) every() time.Duration {
	if s == nil {
		return 0
	}
	return s.Every
}

// open opens the bucket once.
func (s *saver) open(ctx context.Context) error {
	if s.bucket != nil {
		return nil
	}
	b, err := s.stage.Bus.Bucket(ctx, s.Bucket)
	if err == nil {
		s.bucket = b
	}
	return err
}

// restorePatiently retries while the bus answers too late: a busy bus, or one that has just
// started, is no reason to forget the learned state.
func (s *saver) restorePatiently(ctx context.Context, step trimtab.Snapshotter) error {
	for began := time.Now(); ; {
		err := s.restore(ctx, step)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > restorePatience {
			return err
		}
		s.stage.Logger.Warn("snapshots not restored yet", "bucket", s.Bucket, "err", err)
	}
}

// restore passes the step its states from the bucket.
func (s *saver) restore(ctx context.Context, step trimtab.Snapshotter) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return err
	}
	keys, err := s.bucket.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		name, ours := strings.CutPrefix(key, s.stage.Name+"/")
		if _, before := s.kept[name]; !ours || before {
			continue
		}
		raw, _, err := s.bucket.Get(ctx, key)
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("read %s: %w", key, err)
		}
		if err == nil {
			s.kept[name] = [sha256.Size]byte{} // matches no state, so it is written again, or deleted
			err = s.restoreOne(step, name, raw)
		}
		if err != nil {
			s.stage.counts.snapshot("broken")
			s.stage.Logger.Warn("snapshot ignored", "name", name, "err", err)
			continue
		}
		s.stage.counts.snapshot("restored")
	}
	return nil
}

// packed begins the value of a state that is compressed. Earlier versions wrote
// crc32(state), in 4 bytes, little endian, and the state.
const packed = "s2/1"

// Seal encodes a state: [packed], crc32(state) in 4 bytes, little endian, and the state
// compressed, typically to a fifth of its size.
func Seal(state []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(packed), crc32.ChecksumIEEE(state))
	return append(out, s2.Encode(nil, state)...)
}

// Unseal decodes a state that Seal encoded.
func Unseal(raw []byte) ([]byte, error) {
	body, compressed := bytes.CutPrefix(raw, []byte(packed))
	if len(body) < 4 {
		return nil, trimtab.Invalidf("%d bytes are too few", len(raw))
	}
	state := body[4:]
	if compressed {
		n, err := s2.DecodedLen(state)
		if err != nil || n > snapshotMax {
			return nil, trimtab.Invalidf("%d bytes that hold %d, limit %d", len(state), n, snapshotMax)
		}
		if state, err = s2.Decode(make([]byte, n), state); err != nil {
			return nil, fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
		}
	}
	if binary.LittleEndian.Uint32(body) != crc32.ChecksumIEEE(state) {
		return nil, trimtab.Invalidf("the sum of its %d bytes is wrong", len(state))
	}
	return state, nil
}

// restoreOne checks and restores one state; a panic is an error.
func (s *saver) restoreOne(step trimtab.Snapshotter, name string, raw []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = trimtab.Invalidf("restore %s: panic: %v", name, p)
		}
	}()
	state, err := Unseal(raw)
	if err != nil {
		return fmt.Errorf("restore %s: %w", name, err)
	}
	s.kept[name] = sha256.Sum256(state)
	return step.Restore(name, state)
}

// save queues a request to save, which replaces an older one that still waits. The owner's
// goroutine takes the states itself at the end, and if they cannot be taken one by one.
func (r *stage) save(end bool) {
	if r.saver == nil {
		return
	}
	var next saving
	err := r.recovered(func() {
		if p, ok := r.Step.(trimtab.Parted); ok && !end {
			next.names = p.States()
		}
		if next.names == nil {
			next.states = r.Step.(trimtab.Snapshotter).Snapshot()
		}
	})
	if err != nil {
		r.counts.snapshot("failed")
		r.Logger.Error("snapshot not taken", "err", err)
		return
	}
	select {
	case <-r.saver.queue:
	default:
	}
	r.saver.queue <- next
}

// state owns the step while it takes one of its states; false: the step has no state of that name.
func (r *stage) state(name string) (state []byte, ok bool, err error) {
	r.owned <- struct{}{}
	defer r.disown()
	err = r.recovered(func() { state, ok = r.Step.(trimtab.Parted).State(name) })
	return state, ok, err
}

// recovered converts a panic of the step, while its state is taken, into an error.
func (r *stage) recovered(take func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.counts.panicked()
			err = fmt.Errorf("take snapshot: panic: %v", p)
		}
	}()
	take()
	return nil
}

// close writes the queued states and ends.
func (s *saver) close() {
	if s == nil {
		return
	}
	close(s.queue)
	<-s.done
}

func (s *saver) run() {
	defer close(s.done)
	for next := range s.queue {
		if err := s.write(next); err != nil {
			s.stage.counts.snapshot("failed")
			s.stage.Logger.Warn("snapshot not saved", "bucket", s.Bucket, "err", err)
		}
	}
}

// write updates the bucket. Each state has its own timeout: ten thousand workloads together take
// longer than a single state may.
func (s *saver) write(next saving) error {
	if err := inTime(s.open); err != nil {
		return err
	}
	names := next.names
	if names == nil {
		names = slices.Collect(maps.Keys(next.states))
	}
	slices.Sort(names)
	still := make(map[string]bool, len(names))
	for _, name := range names {
		state, ok, err := next.states[name], true, error(nil)
		if next.states == nil {
			state, ok, err = s.stage.state(name)
		}
		if err == nil && ok {
			still[name] = true
			err = s.put(name, state)
		}
		if err != nil {
			return err
		}
	}
	for name := range s.kept {
		if still[name] {
			continue
		}
		if err := inTime(func(ctx context.Context) error { return s.bucket.Delete(ctx, s.stage.Name+"/"+name) }); err != nil {
			return err
		}
		delete(s.kept, name)
	}
	return nil
}

// put writes one state that is another than before.
func (s *saver) put(name string, state []byte) error {
	digest := sha256.Sum256(state)
	if digest == s.kept[name] {
		return nil
	}
	if len(state) > snapshotMax {
		s.stage.counts.snapshot("failed")
		s.stage.Logger.Error("snapshot too large", "name", name, "bytes", len(state), "limit", snapshotMax)
		return nil
	}
	err := inTime(func(ctx context.Context) error {
		_, err := s.bucket.Put(ctx, s.stage.Name+"/"+name, Seal(state))
		return err
	})
	if err == nil {
		s.kept[name] = digest
		s.stage.counts.snapshot("saved")
	}
	return err
}

// inTime calls do with a timeout of [saveTimeout].
func inTime(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	return do(ctx)
}
