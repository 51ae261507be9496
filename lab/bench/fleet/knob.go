package main

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// knob is a CPU limit in memory: what a kernel would keep.
type knob struct {
	workload, host string
	bits           atomic.Uint64
}

var _ actuator.Knob = (*knob)(nil)

func newKnob(workload string) *knob {
	k := &knob{workload: workload}
	k.bits.Store(math.Float64bits(firstCores))
	return k
}

func (k *knob) cores() float64               { return math.Float64frombits(k.bits.Load()) }
func (k *knob) String() string               { return "memory " + k.workload }
func (k *knob) Resource() string             { return trimtab.CPU }
func (k *knob) Probe(context.Context) error  { return nil }
func (k *knob) Traits() actuator.Traits      { return actuator.Traits{} }
func (k *knob) Undo() []byte                 { return []byte(k.workload) }
func (*knob) MayWrite(context.Context) error { return nil }
func (k *knob) Read(context.Context) (trimtab.Amount, error) {
	return trimtab.Units(k.cores()), nil
}

// Nearest is a quota in microseconds of 100 ms, as a kernel takes it.
func (*knob) Nearest(a trimtab.Amount) trimtab.Amount {
	return trimtab.Units(math.Round(a.Value*1e5) / 1e5)
}

func (k *knob) Write(_ context.Context, a trimtab.Amount) error {
	k.bits.Store(math.Float64bits(a.Value))
	return nil
}

// reopen finds nothing: what was in memory went with its process.
func reopen(undo []byte) (actuator.Knob, error) {
	return nil, fmt.Errorf("reopen %q: %w", undo, trimtab.ErrUnsupported)
}

// Close has nothing to close.
func (k *knob) Close() error { return nil }
