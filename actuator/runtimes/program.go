package runtimes

import (
	"context"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Program is a running program that keeps its memory by a limit that it can be told. Each method ends
// with its context; an answer that makes no sense is trimtab.ErrInvalid.
type Program interface {
	// String names the program, as in "JVM 4711".
	String() string
	// Process is the process that answers. A Program is that of one process: if another one answers in
	// its place, each method fails.
	Process() Process
	// Read asks for its state. It changes nothing.
	Read(ctx context.Context) (State, error)
	// Set tells it to keep within a room, and reads back. It never raises a setting above that of
	// was, the state before trimtab changed it. It is trimtab.ErrRefused if the program cannot work in
	// the room.
	Set(ctx context.Context, to Room, was State) error
	// Free asks it to give unused memory back to the kernel now, for that room. It is
	// trimtab.ErrRefused if the program needs more.
	Free(ctx context.Context, to Room) error
	// Restore sets exactly the setting of a State.
	Restore(ctx context.Context, setting string) error
}

// State is what a program says of its memory, in bytes.
type State struct {
	// Setting is all that Set changes, in a form of the program's own.
	Setting string `json:"setting"`
	// Held is what it holds of the group's memory under its limit. Least is the part of it that no
	// setting makes it give back.
	Held, Least float64 `json:"-"`
}

// Room is the memory that a limit of a group leaves a program.
type Room struct {
	// Bytes are for what counts as [State].Held.
	Bytes float64
	// Goal is the new limit of the group, and Before its limit before trimtab changed the program; 0:
	// it had none.
	Goal, Before float64
}

// The kinds of programs.
const (
	JVM      = "jvm"
	Go       = "go"
	Redis    = "redis"
	Postgres = "postgres"
)

// find finds the programs of a configuration among the processes of a group: all of them, or none and an
// error. No program and no error: no process is of the kind.
func find(ctx context.Context, at *actuator.Runtime, members []int) ([]Program, error) {
	switch at.Kind {
	case JVM:
		return findJVMs(members)
	case Go:
		return findGo(ctx, at, members)
	case Redis:
		return findRedis(ctx, at, members)
	case Postgres:
		return findPostgres(ctx, at, members)
	}
	return nil, fmt.Errorf("runtime %.20q: %w", at.Kind, trimtab.ErrUnsupported)
}

// bytesOf returns an amount of memory for a message.
func bytesOf(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }

// needs returns the error of a program that cannot work in a room.
func needs(p Program, least float64, to Room) error {
	return fmt.Errorf("%s needs %s, and a limit of %s would leave it %s: %w", p, bytesOf(least), bytesOf(to.Goal), bytesOf(max(0, to.Bytes)), trimtab.ErrRefused)
}
