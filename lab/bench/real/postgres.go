package main

import (
	"context"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// postgres runs a query for each request. Work is the number of rows in hundreds.
type postgres struct{ *rig.Postgres }

// sessions is the size of the connection pool: requests wait for one of them,
// as they do in most applications.
const sessions = 4

func (p *postgres) start(ctx context.Context, in *rig.Group, dir string) (err error) {
	p.Postgres, err = rig.StartPostgres(ctx, in, dir, sessions)
	return err
}

func (p *postgres) do(ctx context.Context, work int) error { return p.Sum(ctx, 100*work) }

func (p *postgres) close() { p.Close() }
