package main

import (
	"context"
	"errors"
	"time"
)

// product is trimtab with a policy.
type product struct{ policy string }

func (p *product) open(ctx context.Context, b *bench, dir string) error { return errors.ErrUnsupported }
func (p *product) run(ctx context.Context) error                        { return nil }
func (p *product) tell(begin time.Time, o *outcome)                     {}
func (p *product) close(ctx context.Context, r *row)                    {}
