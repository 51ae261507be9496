package record

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

const (
	// queued is how many calls may wait to be written.
	queued = 8192
	// flushEvery is how much time a crash of the process may lose; a crash of the machine loses
	// what was written since the last rotation.
	flushEvery = time.Second
	// retryAfter is the pause after a disk refused to take more.
	retryAfter = 10 * time.Second
)

// Config says where to and how much.
type Config struct {
	// Dir is made when it is absent.
	Dir string
	// MaxBytes bounds all segments together; 0: 1 GiB.
	MaxBytes int64
	// SegmentBytes and SegmentAge close a segment; 0: 16 MiB and 1 h. At most
	// a quarter of MaxBytes.
	SegmentBytes int64
	SegmentAge   time.Duration
	// Build and Digest go into the header.
	Build, Digest string
	Metrics       *metric.Set
	// Logger; nil: silent.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = min(16<<20, c.MaxBytes/4)
	}
	if c.SegmentAge == 0 {
		c.SegmentAge = time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate checks that Start has all it needs.
func (c *Config) Validate() error {
	switch {
	case c.Dir == "" || c.Metrics == nil:
		return trimtab.Invalidf("record: needs a directory and metrics")
	case c.SegmentBytes < 1<<10 || c.SegmentBytes > c.MaxBytes/4 || c.SegmentAge <= 0:
		return trimtab.Invalidf("record: segments of %d bytes and %v in %d bytes", c.SegmentBytes, c.SegmentAge, c.MaxBytes)
	}
	return nil
}

// Recorder writes a recording. It is safe for concurrent use.
type Recorder struct {
	config Config
	queue  chan call
	quit   chan struct{}
	once   sync.Once
	done   chan struct{}

	// Those below belong to its goroutine, lost but for its lock.
	store    *store
	open     *segment
	paused   time.Time // when the disk failed last
	warnedAt time.Time // when losses were last logged
	written  float64   // lines since the last count

	mu   sync.Mutex
	lost uint64 // calls dropped since the last line
}

// Start begins a new segment in c.Dir.
func Start(c Config) (*Recorder, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{config: c, queue: make(chan call, queued), quit: make(chan struct{}), done: make(chan struct{}), store: &store{config: &c}}
	var err error
	if r.open, err = r.store.create(time.Now()); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// record queues one call and never blocks.
func (r *Recorder) record(c call) {
	select {
	case r.queue <- c:
	default:
		r.drop()
	}
}

func (r *Recorder) drop() {
	r.config.Metrics.Counter("trimtab_exporter_dropped_total", "record").Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost++
}

// Close writes the queued calls and completes the segment. The taps must not be used any more.
func (r *Recorder) Close() error {
	r.once.Do(func() { close(r.quit) })
	<-r.done
	return nil
}

func (r *Recorder) run() {
	defer close(r.done)
	r.store.tidy(r.open.number)
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for {
		select {
		case c := <-r.queue:
			r.write(&c)
		case now := <-flush.C:
			r.settle(now)
		case <-r.quit:
			for len(r.queue) > 0 {
				c := <-r.queue
				r.write(&c)
			}
			r.rotate()
			r.count()
			return
		}
	}
}

// write writes all lines of a call, or none.
func (r *Recorder) write(c *call) {
	if r.open == nil && !r.reopen() {
		r.drop()
		return
	}
	lines := c.all()
	r.mu.Lock()
	lines[0].Lost, r.lost = r.lost, 0
	r.mu.Unlock()
	var block []byte
	for _, l := range lines {
		b, err := l.encode()
		if err != nil {
			r.refuse(lines[0].Lost, "record a value", err)
			return
		}
		block = append(block, b...)
	}
	if int64(len(block)) > r.config.SegmentBytes {
		r.refuse(lines[0].Lost, "record a call", trimtab.Invalidf("%d bytes, segments of %d", len(block), r.config.SegmentBytes))
		return
	}
	if r.open.size+int64(len(block)) > r.config.SegmentBytes {
		if r.rotate(); !r.reopen() {
			r.refuse(lines[0].Lost, "", nil)
			return
		}
	}
	if err := r.open.append(block); err != nil {
		r.refuse(lines[0].Lost, "", nil)
		r.fail(err)
		return
	}
	r.written += float64(len(lines))
}

// refuse counts a call that cannot be written, and those that it would have
// said to be lost.
func (r *Recorder) refuse(lost uint64, what string, err error) {
	if err != nil {
		r.config.Logger.Debug("not recorded", "what", what, "err", err)
	}
	r.drop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += lost
}

// settle does the work that is due once a second.
func (r *Recorder) settle(now time.Time) {
	if r.open != nil {
		if err := r.open.flush(); err != nil {
			r.fail(err)
		} else if now.Sub(r.open.began) >= r.config.SegmentAge && r.open.lines() {
			r.rotate()
		}
	}
	r.count()
}

func (r *Recorder) count() {
	r.config.Metrics.Counter("trimtab_record_lines_total").Add(r.written)
	r.written = 0
	total := r.store.closed
	if r.open != nil {
		total += r.open.size
	}
	r.config.Metrics.Gauge("trimtab_record_bytes").Set(float64(total))
}

// rotate completes the open segment.
func (r *Recorder) rotate() {
	s := r.open
	if r.open = nil; s == nil {
		return
	}
	if err := s.close(); err != nil {
		r.fail(err)
		return
	}
	if err := r.store.compress(s.number); err != nil {
		r.complain(err)
	}
	r.store.shrink(0)
}

// reopen begins the next segment, unless the disk failed just now.
func (r *Recorder) reopen() bool {
	now := time.Now()
	if r.open != nil || now.Sub(r.paused) < retryAfter {
		return r.open != nil
	}
	s, err := r.store.create(now)
	if err != nil {
		r.fail(err)
		return false
	}
	r.open = s
	return true
}

// fail gives up the open segment, which can be read up to the cut.
func (r *Recorder) fail(err error) {
	if r.open != nil {
		r.open.abandon()
		r.open = nil
	}
	r.paused = time.Now()
	r.complain(err)
}

// complain logs at most once a minute.
func (r *Recorder) complain(err error) {
	if now := time.Now(); r.warnedAt.IsZero() || now.Sub(r.warnedAt) >= time.Minute {
		r.warnedAt = now
		r.config.Logger.Warn("recording is interrupted", "dir", r.config.Dir, "err", err)
	}
}
