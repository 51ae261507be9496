package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// beacon is how a part that follows plans watches the leader's lock. A name in the lock proves
// little: its holder may be dead. A holder that renews it is alive.
type beacon struct {
	bucket   bus.Bucket
	holder   string
	revision uint64
	moved    time.Time // when revision was first seen; zero: it was there before
	since    time.Time // since when somebody leads; zero: nobody does, as far as is known
}

// lookTimeout bounds one look.
const lookTimeout = time.Second

// lookForLeader checks whether a planner leads the pool that the part follows. If the lock cannot
// be read, nothing changes: other checks report that the bus is away.
func (h *Health) lookForLeader(ctx context.Context, b bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l := &h.leader // only this goroutine changes bucket, revision and moved
	if l.bucket == nil {
		bucket, err := b.Bucket(ctx, bucketLeaders)
		if err != nil {
			return
		}
		l.bucket = bucket
	}
	raw, revision, err := l.bucket.Get(ctx, h.work.Follows)
	var r lockRecord
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return
	}
	now := time.Now()
	if revision != l.revision && l.revision != 0 {
		l.moved = now
	}
	l.revision = revision
	term := min(max(r.Term, defaultTerm.Seconds()), maxTerm.Seconds())
	alive := r.Holder != "" && !l.moved.IsZero() && now.Sub(l.moved).Seconds() < term
	h.mu.Lock()
	defer h.mu.Unlock()
	l.holder = r.Holder
	switch {
	case !alive:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	}
}
