package main

import (
	"context"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// redis runs a Lua script for each request. Work is the number of turns in hundreds.
type redis struct{ *rig.Redis }

func (r *redis) start(ctx context.Context, in *rig.Group, dir string) (err error) {
	r.Redis, err = rig.StartRedis(ctx, in, dir, inFlight)
	return err
}

func (r *redis) do(ctx context.Context, work int) error { return r.Turn(ctx, 100*work) }

func (r *redis) close() { r.Close() }
