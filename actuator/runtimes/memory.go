package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

const (
	// margin and leastMargin are what cgroup.Memory keeps free above the memory in use: a part of it,
	// and bytes.
	margin, leastMargin = 1.0 / 8, 4 << 20
	// lookAfter is how old the state of programs may be that Floor uses, and startAfter that no program
	// was there.
	lookAfter, startAfter = 10 * time.Second, time.Second
	// restAfter is how long nothing below the memory in use is offered after a fall for which the
	// memory did not come back: each attempt costs the programs a collection.
	restAfter = time.Minute
	// settleAfter is how long programs may give memory back by themselves before they are asked to
	// collect; pollEvery is how often the memory in use is read meanwhile.
	settleAfter, pollEvery = 200 * time.Millisecond, 50 * time.Millisecond
	// told is the part of the room that programs are told: they keep to a limit roughly.
	told = 0.98
)

// Memory is the memory limit of a group whose programs are told of it. It is an [actuator.Knob].
type Memory struct {
	// Knob is the limit itself, which has Traits.Floor.
	actuator.Knob
	inner   actuator.Traits
	config  actuator.Runtime
	members func() ([]int, error)
	find    func(ctx context.Context, at *actuator.Runtime, members []int) ([]Program, error)
	turn    *turn
	// parts are the programs that were found, with their settings of before.
	parts []part
	// spare is how much of what programs hold they could give back at the last look, in bytes. again
	// is when to look again.
	spare float64
	again time.Time
}

// part is one program with its state before trimtab changed it.
type part struct {
	Runtime actuator.Runtime `json:"runtime"`
	Process Process          `json:"process"`
	State
	// Before is the limit of the group at that time, in bytes; 0: it had none.
	Before float64 `json:"before,omitempty"`

	// journaled is the Setting that the last Undo had. set says that trimtab may have changed the
	// program, and last is what it read then; "": unknown, as another process of trimtab did.
	journaled string
	set       bool
	last      string
}

// found is a program that runs now, with its state.
type found struct {
	Program
	State
	part *part
}

// kind is the format name in what Undo returns.
const kind = "runtime-memory/1"

type undo struct {
	Of      json.RawMessage  `json:"of"`
	Runtime actuator.Runtime `json:"runtime"`
	Parts   []part           `json:"parts,omitempty"`
}

// Undo describes the knob, and the settings that programs had before trimtab changed them.
func (k *Memory) Undo() []byte {
	for i := range k.parts {
		k.parts[i].journaled = k.parts[i].Setting
	}
	return actuator.UndoOf(kind, undo{k.Knob.Undo(), k.config, k.parts})
}

// recall takes over the settings in the Undo of an earlier process.
func (k *Memory) recall(b []byte) error {
	of := b
	u, err := actuator.ReadUndo[undo](kind, b)
	if err == nil {
		of = u.Of
		for _, p := range u.Parts {
			p.set, p.journaled = true, p.Setting
			k.parts = slices.DeleteFunc(k.parts, func(x part) bool { return x.Process == p.Process })
			k.parts = append(k.parts, p)
		}
	}
	if k.inner.Recall != nil {
		return k.inner.Recall(of)
	}
	return nil
}

// String names the group and the kind of program.
func (k *Memory) String() string { return k.Knob.String() + " with its " + k.config.Kind }

// Traits returns those of the limit, with what programs add.
func (k *Memory) Traits() actuator.Traits {
	t := k.inner
	t.Floor, t.Recall, t.Settle = k.Floor, k.recall, k.settle
	t.TakesOver = func(b []byte) bool {
		_, err := actuator.ReadUndo[undo](kind, b)
		return err == nil || k.inner.TakesOver == nil || k.inner.TakesOver(b)
	}
	return t
}

// look finds the programs and asks for their states. Those that trimtab has not changed yet get a new
// state of before.
func (k *Memory) look(ctx context.Context) (all []found, err error) {
	ctx, cancel := within(ctx)
	defer cancel()
	members, err := k.members()
	if err != nil {
		return nil, err
	}
	limit, err := k.Knob.Read(ctx)
	if err != nil {
		return nil, err
	}
	programs, err := k.find(ctx, &k.config, members)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, p := range programs {
		s, err := p.Read(ctx)
		switch {
		case err != nil && p.Process().alive() != nil:
			continue
		case err != nil:
			return nil, err
		}
		now := part{Runtime: k.config, Process: p.Process(), State: s, Before: limit.Value}
		if i := slices.IndexFunc(k.parts, func(x part) bool { return x.Process == now.Process }); i >= 0 {
			old := k.parts[i]
			if old.set {
				now = old
			}
			now.journaled = old.journaled
		}
		parts, all = append(parts, now), append(all, found{p, s, nil})
	}
	k.parts = parts
	for i := range all {
		all[i].part = &k.parts[i]
	}
	return all, nil
}

// used returns the memory in use from a floor, and floorOf the reverse: see cgroup.Memory.
func used(floor float64) float64 { return math.Min(floor/(1+margin), floor-leastMargin) }

func floorOf(used float64) float64 {
	page := float64(os.Getpagesize())
	return math.Ceil((used+math.Max(leastMargin, margin*used))/page) * page
}

// Floor returns the least limit that may be set: the memory in use less what programs could give back,
// and the margin.
func (k *Memory) Floor(ctx context.Context) (trimtab.Amount, error) {
	least, err := k.inner.Floor(ctx)
	if err != nil {
		return least, err
	}
	if now := time.Now(); !now.Before(k.again) {
		k.again, k.spare = now.Add(lookAfter), 0
		if all, err := k.look(ctx); err == nil { // else nothing below the memory in use is offered
			if k.spare = spare(all); len(all) == 0 {
				k.again = now.Add(startAfter)
			}
		}
	}
	return k.less(least, k.spare), nil
}

// less returns a floor after programs gave back so many bytes.
func (k *Memory) less(floor trimtab.Amount, bytes float64) trimtab.Amount {
	if bytes <= 0 {
		return floor
	}
	return trimtab.Units(math.Min(floor.Value, floorOf(math.Max(0, used(floor.Value)-bytes))))
}

func spare(all []found) (bytes float64) {
	for _, f := range all {
		bytes += math.Max(0, f.Held-f.Least)
	}
	return bytes
}

// Write sets the limit. A fall waits for the memory; its error is trimtab.ErrRefused if it did not
// come back, and trimtab.ErrStale if a program is not in the last Undo.
func (k *Memory) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	now, err := k.Knob.Read(ctx)
	if err != nil {
		return err
	}
	if goal := k.Nearest(a); goal.Less(now) {
		if err := k.fall(ctx, now, goal); err != nil {
			if k.spare, k.again = 0, time.Now().Add(restAfter); errors.Is(err, trimtab.ErrStale) {
				k.again = time.Time{} // the next plan finds the program in the journal
			}
			return fmt.Errorf("lower %s to %s: the limit stays: %w", k, bytesOf(goal.Value), err)
		}
		return nil
	}
	if err := k.Knob.Write(ctx, a); err != nil {
		return err
	}
	return k.rise(ctx, a)
}

// fall tells the programs, waits for the memory, and lowers the limit. If that fails, the programs get
// the setting for the limit of now.
func (k *Memory) fall(ctx context.Context, now, goal trimtab.Amount) error {
	all, err := k.look(ctx)
	if err == nil {
		err = k.mayFall(ctx, all, goal)
	}
	if err != nil {
		return err
	}
	wait, done := k.turn.take(k.config.Wait)
	defer done()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err = k.tell(waiting, all, goal); err == nil {
		err = k.await(waiting, all, goal)
	}
	if err == nil {
		err = k.Knob.Write(ctx, goal)
	}
	if err != nil {
		back, cancel := within(context.WithoutCancel(ctx))
		defer cancel()
		err = errors.Join(err, k.tell(back, all, now))
	}
	return err
}

// mayFall returns an error if a fall must not begin.
func (k *Memory) mayFall(ctx context.Context, all []found, goal trimtab.Amount) error {
	if len(all) == 0 {
		return fmt.Errorf("no process of the group is a %s that could be told: %w", k.config.Kind, trimtab.ErrRefused)
	}
	for _, f := range all {
		switch p := f.part; {
		case p.journaled != p.Setting:
			return fmt.Errorf("%s is new, or was set by another program, since the journal was written: %w", f.Program, trimtab.ErrStale)
		case p.set && p.last != "" && f.Setting != p.last && f.Setting != p.Setting:
			return fmt.Errorf("another program set %s to %.60s, and trimtab to %.60s: %w", f.Program, f.Setting, p.last, trimtab.ErrRefused)
		}
	}
	floor, err := k.inner.Floor(ctx)
	if err == nil && goal.Less(k.less(floor, spare(all))) {
		err = fmt.Errorf("with the margin %s are in use, of which programs can give back %s: %w", bytesOf(floor.Value), bytesOf(spare(all)), trimtab.ErrRefused)
	}
	return err
}

// tell sets the programs to what a limit leaves them, by what each holds now. Where the limit is that
// of before, they get exactly their setting of before. A program that ended needs nothing.
func (k *Memory) tell(ctx context.Context, all []found, limit trimtab.Amount) error {
	floor, err := k.inner.Floor(ctx)
	if err != nil {
		return err
	}
	held := 0.0
	for _, f := range all {
		held += f.Held
	}
	others := math.Max(0, used(floor.Value)-held)
	for _, f := range all {
		share := 1 / float64(len(all))
		if held > 0 {
			share = f.Held / held
		}
		room := math.Max(share*(told*used(limit.Value)-others), math.Min(f.Least, share*(used(limit.Value)-others)))
		to := Room{Bytes: room, Goal: limit.Value, Before: f.part.Before}
		err = errors.Join(err, k.tellOne(ctx, f, to, limit))
	}
	return err
}

func (k *Memory) tellOne(ctx context.Context, f found, to Room, limit trimtab.Amount) error {
	ctx, cancel := within(ctx)
	defer cancel()
	was := f.part.set
	f.part.set, f.part.last = true, ""
	var err error
	if limit.Unlimited || to.Before > 0 && limit.Value >= to.Before {
		if !was {
			f.part.set = false
			return nil // it was never told
		}
		err = f.Restore(ctx, f.part.Setting)
	} else {
		err = f.Set(ctx, to, f.part.State)
	}
	if err == nil {
		var s State
		if s, err = f.Read(ctx); err == nil {
			f.part.last = s.Setting
		}
	}
	if err != nil && f.Process().alive() != nil {
		return nil
	}
	return err
}

// await returns once the memory in use and the margin fit below the goal. If that does not happen by
// itself, it asks the programs once to give memory back.
func (k *Memory) await(ctx context.Context, all []found, goal trimtab.Amount) error {
	ask := time.After(settleAfter)
	for {
		floor, err := k.inner.Floor(context.WithoutCancel(ctx))
		if err != nil || !goal.Less(floor) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the memory did not come back within %v: with the margin %s are in use: %w", k.config.Wait, bytesOf(floor.Value), trimtab.ErrRefused)
		case <-ask:
			if err := k.free(ctx, all, goal); err != nil {
				return err
			}
		case <-time.After(pollEvery):
		}
	}
}

// free asks the programs to give memory back.
func (k *Memory) free(ctx context.Context, all []found, goal trimtab.Amount) (err error) {
	floor, err := k.inner.Floor(ctx)
	held := 0.0
	for _, f := range all {
		held += f.Held
	}
	for _, f := range all {
		// What others hold is counted as at the last look: it changes little meanwhile.
		room := used(goal.Value) - math.Max(0, used(floor.Value)-held)
		bad := f.Free(ctx, Room{Bytes: room * f.Held / math.Max(1, held), Goal: goal.Value, Before: f.part.Before})
		if bad != nil && f.Process().alive() == nil {
			err = errors.Join(err, bad)
		}
	}
	return err
}

// rise tells the programs of a limit that has risen, if they were told of a fall before. A program that
// needs more than the limit leaves it keeps its setting.
func (k *Memory) rise(ctx context.Context, limit trimtab.Amount) error {
	if !slices.ContainsFunc(k.parts, func(p part) bool { return p.set }) {
		return nil
	}
	all, err := k.look(ctx)
	if err == nil {
		all = slices.DeleteFunc(all, func(f found) bool { return !f.part.set })
		err = k.tell(ctx, all, limit)
	}
	if err != nil && !errors.Is(err, trimtab.ErrRefused) {
		return fmt.Errorf("the limit of %s rose, and its programs still keep to the former one: %w", k, err)
	}
	return nil
}

// settle restores the settings of programs that still run.
func (k *Memory) settle() (err error) {
	ctx, cancel := within(context.Background())
	defer cancel()
	for _, p := range k.parts {
		if p.set {
			err = errors.Join(err, k.restore(ctx, &p))
		}
	}
	if err == nil {
		k.parts, k.again = nil, time.Time{}
	}
	if k.inner.Settle != nil {
		err = errors.Join(err, k.inner.Settle())
	}
	return err
}

func (k *Memory) restore(ctx context.Context, p *part) error {
	members, err := k.members()
	if p.Process.alive() != nil || errors.Is(err, os.ErrNotExist) {
		return nil // it ended, and nothing is left of its setting
	}
	var programs []Program
	if err == nil {
		programs, err = k.find(ctx, &p.Runtime, members)
	}
	for _, program := range programs {
		if program.Process() != p.Process {
			continue
		}
		var s State
		if s, err = program.Read(ctx); err == nil && s.Setting != p.Setting {
			err = program.Restore(ctx, p.Setting)
		}
		return err
	}
	if err == nil && p.Process.alive() == nil {
		err = fmt.Errorf("restore process %d: it is no %s of the group any more: %w", p.Process.PID, p.Runtime.Kind, trimtab.ErrRefused)
	}
	return err
}
