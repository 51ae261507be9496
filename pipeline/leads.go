package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Leads returns the holder of a pool's lock and its epoch, for parts that only observe; empty:
// there is no holder. A holder that died is returned until another takes over.
func Leads(ctx context.Context, b bus.Bus, pool string) (holder string, epoch uint64, err error) {
	if pool == "" {
		return "", 0, nil
	}
	bucket, err := b.Bucket(ctx, bucketLeaders)
	if err != nil {
		return "", 0, fmt.Errorf("find leader of %s: %w", pool, err)
	}
	value, _, err := bucket.Get(ctx, pool)
	if errors.Is(err, bus.ErrNotFound) {
		return "", 0, nil
	}
	var l lockRecord
	if err == nil {
		if err = json.Unmarshal(value, &l); err != nil {
			err = fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("find leader of %s: %w", pool, err)
	}
	return l.Holder, l.Epoch, nil
}
